// Package payload stores data that does not fit into an event as objects, and restores it.
//
// An object belongs to one log of one tenant. Its name consists of the log and the digest of the
// data, so that repeated stores of the same data use the same object. Objects expire with the
// events that name them.
//
// The gateway stores the data before it sends the command; command and event have a reference (log, digest, size). It names
// no tenant: the tenant of the log counts, so that no reference leads to another tenant's objects. Reducers copy references
// and never load them. Streams load the data before they encode the event, and wait for it as for a full connection.
package payload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// Inline is the largest data in bytes that stays in an event or a command: half of an event, and small enough for
	// a command with its envelope.
	Inline = 120 << 10
	// maxSize bounds loaded data: many times the largest frame.
	maxSize = 64 << 20
	// maxWait bounds one object, which takes milliseconds.
	maxWait = 10 * time.Second
)

// Store stores and loads objects. It is safe for concurrent use.
type Store struct {
	conn *bus.Conn
	js   jetstream.JetStream
	log  *zerolog.Logger

	mu      sync.Mutex
	objects jetstream.ObjectStore // nil until its first use
	stream  jetstream.Stream      // the stream of objects
}

// New returns the store of an installation.
func New(conn *bus.Conn) *Store { return &Store{conn: conn, js: conn.JS(), log: conn.Logger()} }

func (s *Store) open(ctx context.Context) (jetstream.ObjectStore, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects != nil {
		return s.objects, nil
	}
	stream, err := s.js.Stream(ctx, subject.StreamPayloads)
	if err != nil {
		return nil, fmt.Errorf("open the stream %s: %w", subject.StreamPayloads, err)
	}
	objects, err := s.js.ObjectStore(ctx, subject.BucketPayloads)
	if err != nil {
		return nil, fmt.Errorf("open the object store %s: %w", subject.BucketPayloads, err)
	}
	s.objects, s.stream = objects, stream
	return objects, nil
}

// Put stores data for a log and returns a reference to it. It does not store the same data twice. Its errors are
// faults, or ctx's: MessageTooBig if the store is full.
func (s *Store) Put(ctx context.Context, log subject.Log, data []byte) (*event.ObjectRef, error) {
	sum := sha256.Sum256(data)
	ref := &event.ObjectRef{Log: log.Local(), Digest: hex.EncodeToString(sum[:]), Size: int64(len(data))}
	name, err := subject.PayloadName(log, ref.Digest)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	objects, err := s.open(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	have, err := objects.GetInfo(ctx, name)
	switch {
	case err == nil && have.Size == uint64(len(data)) && time.Since(have.ModTime) < bus.PayloadReuse:
		return ref, nil
	case err != nil && !errors.Is(err, jetstream.ErrObjectNotFound):
		return nil, unavailable(fmt.Errorf("look up object %s: %w", name, err))
	}
	err = write(ctx, s.js, s.stream, name, data)
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == codeStoreFailed {
		s.log.Error().Err(err).Msg("large data rejected: stream or disk full")
		return nil, fault.Newf(fault.MessageTooBig, "Data of %d bytes cannot be stored now: the store is full. Send less at a time, or tell the operator.", len(data)).Wrap(err)
	}
	if err != nil {
		return nil, unavailable(fmt.Errorf("store object %s: %w", name, err))
	}
	return ref, nil
}

// Files stores the contents of the files that a message brings along, and puts a reference in their place. Its errors are those of Put.
func (s *Store) Files(ctx context.Context, log subject.Log, files []event.File) error {
	for i := range files {
		f := &files[i]
		if f.Contents == nil {
			continue
		}
		ref, err := s.Put(ctx, log, f.Contents)
		if err != nil {
			return err
		}
		f.Object, f.Contents = *ref, nil
	}
	return nil
}

// Get loads the data that a reference in a log of the tenant names, and checks it. The error is fault.PayloadLost if
// the object is missing or damaged, and another fault, or ctx's error, if it is unavailable now.
func (s *Store) Get(ctx context.Context, tenant id.Tenant, ref event.ObjectRef) (json.RawMessage, error) {
	name, err := nameOf(tenant, ref)
	if err != nil {
		return nil, lost(err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	objects, err := s.open(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	data, err := s.read(ctx, objects, name, ref.Size)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != ref.Digest || !json.Valid(data) {
		return nil, lost(fmt.Errorf("object %s does not have its digest", name))
	}
	return data, nil
}

// Find loads the data of a log with the digest. The error is fault.PayloadLost if the log has none, and those of Get otherwise.
func (s *Store) Find(ctx context.Context, log subject.Log, digest string) (json.RawMessage, error) {
	name, err := subject.PayloadName(log, digest)
	if err != nil {
		return nil, lost(err)
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	objects, err := s.open(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	info, err := objects.GetInfo(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, jetstream.ErrBadObjectMeta):
		return nil, lost(err)
	case err != nil:
		return nil, unavailable(fmt.Errorf("look up object %s: %w", name, err))
	case info.Size > maxSize:
		return nil, lost(fmt.Errorf("object %s has %d bytes", name, info.Size))
	}
	return s.Get(ctx, log.Tenant, event.ObjectRef{Log: log.Local(), Digest: digest, Size: int64(info.Size)})
}

// read returns an object of the size.
func (s *Store) read(ctx context.Context, objects jetstream.ObjectStore, name string, size int64) ([]byte, error) {
	for {
		info, err := objects.GetInfo(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, jetstream.ErrBadObjectMeta):
			return nil, lost(fmt.Errorf("look up object %s: %w", name, err))
		case err != nil:
			return nil, unavailable(fmt.Errorf("look up object %s: %w", name, err))
		case info.Size != uint64(size): //nolint:gosec // a size is not negative
			return nil, lost(fmt.Errorf("object %s has %d bytes, not %d", name, info.Size, size))
		}
		data, err := s.parts(ctx, info.NUID, size)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			if again, lookErr := objects.GetInfo(ctx, name); lookErr == nil && again.NUID != info.NUID {
				continue
			}
			return nil, lost(fmt.Errorf("read object %s: %w", name, err))
		}
		if err != nil {
			return nil, unavailable(fmt.Errorf("read object %s: %w", name, err))
		}
		return data, nil
	}
}

// parts returns the contents of an object, up to the size. It asks the leader of the stream: a follower may not have
// recent parts yet.
func (s *Store) parts(ctx context.Context, object string, size int64) ([]byte, error) {
	data := make([]byte, 0, size)
	for seq := uint64(1); int64(len(data)) < size; {
		m, err := s.stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject.PayloadParts(object)))
		if err != nil {
			return nil, err
		}
		data, seq = append(data, m.Data...), m.Sequence+1
	}
	return data, nil
}

func nameOf(tenant id.Tenant, ref event.ObjectRef) (string, error) {
	if ref.Size < 0 || ref.Size > maxSize {
		return "", fmt.Errorf("a reference to %d bytes", ref.Size)
	}
	log, err := subject.LogOf(tenant, ref.Log)
	if err != nil {
		return "", err
	}
	return subject.PayloadName(log, ref.Digest)
}

func lost(err error) error { return fault.New(fault.PayloadLost).Wrap(err) }

func unavailable(err error) error { return fault.New(fault.BusUnavailable).Wrap(err) }
