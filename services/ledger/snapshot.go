package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// snapshotEvery is the number of folded events between two snapshots. A replica that
	// takes over the log reads at most that many, in about 100 ms. A team of 50 members
	// that streams at full speed stores a snapshot each second.
	snapshotEvery = 2000
	// maxSnapshot bounds a compressed snapshot, so that it fits into a message (1 MB) with
	// room to spare. A team with 10,000 messages and tool calls reaches it. Beyond it the
	// log is read from the end of the last snapshot.
	maxSnapshot = 512 << 10
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

	kv jetstream.KeyValue // nil: not open
}

// snapshot is the fold of a log up to a position.
type snapshot struct {
	Seq    uint64          `json:"seq"`
	Stream uint64          `json:"stream"`
	Event  string          `json:"event"` // id of the event with the sequence: the log is the one that was folded
	State  json.RawMessage `json:"state"`
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

// load returns the usable snapshot of a log with its state, or nil.
func (x *Snapshots[S]) load(ctx context.Context, log subject.Log) (*snapshot, *S) {
	if x.kv == nil {
		return nil, nil
	}
	e, err := x.kv.Get(ctx, subject.FoldKey(log))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	var s snapshot
	var state *S
	if err == nil {
		err = unpack(e.Value(), &s)
	}
	if err == nil {
		state, err = x.Decode(s.State)
	}
	if err != nil || s.Seq == 0 || s.Stream == 0 || x.Seq(state) != s.Seq {
		x.Logger.Info().Err(err).Stringer("log", log).Msg("read log from its beginning")
		return nil, nil
	}
	return &s, state
}

// store stores the snapshot of a log after the event at the position.
func (x *Snapshots[S]) store(ctx context.Context, log subject.Log, at eventlog.Cursor, eventID string, state *S) {
	if x.kv == nil || at.Stream == 0 {
		return
	}
	folded, err := x.Encode(state)
	if err == nil && folded == nil {
		return
	}
	var raw []byte
	if err == nil {
		raw, err = pack(snapshot{Seq: at.Seq, Stream: at.Stream, Event: eventID, State: folded})
	}
	if err == nil && len(raw) <= maxSnapshot {
		_, err = x.kv.Put(ctx, subject.FoldKey(log), raw)
	}
	if err != nil || len(raw) > maxSnapshot {
		x.Logger.Info().Err(err).Stringer("log", log).Int("bytes", len(raw)).Msg("fail to store snapshot")
	}
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
