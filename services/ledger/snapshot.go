package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// snapshotEvery is the default of Snapshots.Every. A replica that takes over the log reads at most that many, in
	// about 100 ms. A team of 50 members that streams at full speed stores a snapshot each second.
	snapshotEvery = 2000
	// maxUnpacked bounds the unpacked snapshot.
	maxUnpacked = 64 << 20
	// snapshotTime bounds the time for which a slow bus may delay the next use of the log.
	snapshotTime = 5 * time.Second
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
	Seq    uint64          `json:"seq"`
	Stream uint64          `json:"stream"`
	Event  string          `json:"event"` // id of the event with the sequence: the log is the one that was folded
	State  json.RawMessage `json:"state,omitempty"`
	Parts  []string        `json:"parts,omitempty"` // SHA-256 of each part of a snapshot that does not fit into one message; it has the state
	Held   int             `json:"held,omitempty"`  // how many parts some snapshot of the log has had
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
		x.Logger.Warn().Err(err).Str("bucket", subject.BucketFolds).Msg("go on without snapshots")
	default:
		x.kv = kv
	}
	return nil
}

// load returns the usable snapshot of a log with its state, or nil. A snapshot that ends after the end is of another log.
func (x *Snapshots[S]) load(ctx context.Context, log subject.Log, end uint64) (s *snapshot, state *S, at place) {
	if x.kv == nil {
		return nil, nil, at
	}
	s, at, err := x.get(ctx, log)
	if err == nil && s == nil {
		return nil, nil, at
	}
	if err == nil && len(s.Parts) > 0 {
		s, err = x.join(ctx, log, s)
	}
	if err == nil {
		state, err = x.Decode(s.State)
	}
	if err != nil || s.Seq == 0 || s.Seq > end || s.Stream == 0 || x.Seq(state) != s.Seq {
		x.Logger.Info().Err(err).Stringer("log", log).Msg("read log from its beginning")
		return nil, nil, at
	}
	return s, state, at
}

// get returns the stored snapshot, nil without one. After an error the place is still known if there is one.
func (x *Snapshots[S]) get(ctx context.Context, log subject.Log) (*snapshot, place, error) {
	e, err := x.kv.Get(ctx, subject.FoldKey(log))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, place{}, nil
	}
	if err != nil {
		return nil, place{}, fmt.Errorf("get a snapshot: %w", err)
	}
	var s snapshot
	err = unpack(e.Value(), &s)
	at := place{rev: e.Revision(), live: min(len(s.Parts), maxParts), held: max(0, min(s.Held, maxParts))}
	return &s, at, err
}

// store stores the snapshot of a log after the event at the position, unless a later one is there or the log was erased.
func (x *Snapshots[S]) store(ctx context.Context, log subject.Log, at eventlog.Cursor, eventID string, state *S, was place) place {
	if x.kv == nil || at.Stream == 0 {
		return was
	}
	folded, err := x.Encode(state)
	if err == nil && folded == nil {
		return was
	}
	one := snapshot{Seq: at.Seq, Stream: at.Stream, Event: eventID, State: folded}
	var raw []byte
	if err == nil {
		raw, err = pack(one)
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	if err == nil {
		was, err = x.put(ctx, log, one, raw, was)
	}
	if err != nil {
		x.Logger.Warn().Err(err).Stringer("log", log).Int("bytes", len(raw)).Msg("fail to store snapshot")
	}
	return was
}

// put stores a packed snapshot over the one whose revision the caller knows. A revision that has changed is looked up: a
// snapshot that ends later, or none because the log was erased, stays.
func (x *Snapshots[S]) put(ctx context.Context, log subject.Log, one snapshot, raw []byte, was place) (place, error) {
	for try := 0; ; try++ {
		now, err := x.replace(ctx, log, one, raw, was)
		if err == nil || !errors.Is(err, jetstream.ErrKeyRevisionMismatch) || try > 0 {
			return now, err
		}
		other, now, err := x.get(ctx, log)
		if was = now; was.rev == 0 || err == nil && other.Seq >= one.Seq {
			return was, nil
		}
	}
}

// replace stores a packed snapshot over the one with the revision, in one message or in parts.
func (x *Snapshots[S]) replace(ctx context.Context, log subject.Log, one snapshot, raw []byte, was place) (place, error) {
	parts, err := x.split(ctx, log, &one, raw, &was)
	if err == nil && (len(one.Parts) > 0 || one.Held > 0) {
		raw, err = pack(one)
	}
	if err != nil {
		return was, err
	}
	rev, err := x.kv.Update(ctx, subject.FoldKey(log), raw, was.rev)
	if err != nil {
		return was, fmt.Errorf("store a snapshot: %w", err)
	}
	was.rev = rev
	return was, x.putParts(ctx, parts)
}

func pack(s snapshot) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(z).Encode(s), z.Close()); err != nil {
		return nil, fmt.Errorf("pack a snapshot: %w", err)
	}
	return b.Bytes(), nil
}

func unpack(raw []byte, s *snapshot) error {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(z, maxUnpacked)).Decode(s)
	}
	if err != nil {
		return fmt.Errorf("unpack a snapshot: %w", err)
	}
	return nil
}
