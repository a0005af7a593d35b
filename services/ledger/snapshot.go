package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzip"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// snapshotEvery is the default of Snapshots.Every. A replica that takes over the log reads at most that many, in
	// about 100 ms. A team of 50 members that streams at full speed stores a snapshot each second.
	snapshotEvery = 2000
	// maxSnapshot bounds a message with a compressed snapshot, so that it fits the bus (1 MB) with room to spare. A team with
	// 10,000 messages and tool calls reaches it, and a run with some megabytes of results. A larger snapshot has parts.
	maxSnapshot = 512 << 10
	// maxParts bounds the parts: 8 MiB. Beyond it the log is read from the end of the last snapshot.
	maxParts = 16
	// maxUnpacked bounds the unpacked snapshot.
	maxUnpacked = 64 << 20
)

// Snapshots stores the folds of long logs, so that a replica that takes one over need not
// read it from its beginning. Without one, and whatever is wrong with it, the log says
// everything. Open comes before any other use; then it is safe for concurrent use.
type Snapshots[S any] struct {
	Encode func(*S) ([]byte, error) // nil without an error: nothing to store
	Decode func([]byte) (*S, error)
	Seq    func(*S) uint64 // sequence of the last event in the state
	Logger zerolog.Logger
	Every  uint64 // folded events between two snapshots; shorter logs have none; default 2,000
	Lazy   bool   // only Log.Keep stores snapshots, and no other use of the log

	kv jetstream.KeyValue // nil: not open
}

// snapshot is the fold of a log up to a position.
type snapshot struct {
	Seq    uint64         `json:"seq"`
	Stream uint64         `json:"stream"`
	Event  string         `json:"event"` // id of the event with the sequence: the log is the one that was folded
	State  jsontext.Value `json:"state,omitzero"`
	Parts  []string       `json:"parts,omitzero"` // SHA-256 of each part of a snapshot that does not fit into one message; it has the state
	Held   int            `json:"held,omitzero"`  // how many parts some snapshot of the log has had
}

// place is what the holder of a fold knows of the stored snapshot.
type place struct {
	rev  uint64 // revision of the newest one; 0: none
	live int    // its parts
	held int    // see snapshot.Held
}

// every returns the number of folded events between two snapshots.
func (x *Snapshots[S]) every() uint64 {
	if x.Every == 0 {
		return snapshotEvery
	}
	return x.Every
}

// Open opens the bucket of snapshots. In an installation that has none, every log is
// read from its beginning.
func (x *Snapshots[S]) Open(ctx context.Context, conn *bus.Conn) error {
	kv, err := conn.Bucket(ctx, subject.BucketFolds)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		x.Logger.Warn().Err(err).Str("bucket", subject.BucketFolds).Msg("snapshots disabled: bucket unavailable")
	default:
		x.kv = kv
	}
	return nil
}

// packed returns the message with the stored snapshot, nil without one.
func (x *Snapshots[S]) packed(ctx context.Context, log subject.Log) (jetstream.KeyValueEntry, error) {
	e, err := x.kv.Get(ctx, subject.FoldKey(log))
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get a snapshot: %w", err)
	}
	return e, nil
}

// get returns the stored snapshot, nil without one. An error of its contents leaves the place.
func (x *Snapshots[S]) get(ctx context.Context, log subject.Log) (*snapshot, place, error) {
	e, err := x.packed(ctx, log)
	if e == nil {
		return nil, place{}, err
	}
	return opened(e)
}

// opened unpacks a snapshot. An error of its contents leaves the place.
func opened(e jetstream.KeyValueEntry) (*snapshot, place, error) {
	var s snapshot
	err := unpack(e.Value(), &s)
	at := place{rev: e.Revision(), live: min(len(s.Parts), maxParts), held: max(0, min(s.Held, maxParts))}
	return &s, at, err
}

// anyJSON lets a state hold what models wrote: objects with a name twice, and bytes that are not UTF-8.
var anyJSON = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func pack(s snapshot) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed) // a third of the time, a fifth more bytes
	if err != nil {
		return nil, fmt.Errorf("pack a snapshot: %w", err)
	}
	if err := errors.Join(jsonv2.MarshalWrite(z, s, anyJSON), z.Close()); err != nil {
		return nil, fmt.Errorf("pack a snapshot: %w", err)
	}
	return b.Bytes(), nil
}

func unpack(raw []byte, s *snapshot) error {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err == nil {
		err = jsonv2.UnmarshalRead(io.LimitReader(z, maxUnpacked), s, anyJSON)
	}
	if err != nil {
		return fmt.Errorf("unpack a snapshot: %w", err)
	}
	return nil
}
