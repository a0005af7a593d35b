package team

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
	"github.com/waggle-dev/waggle/services/teamwork"
)

const (
	// startEvery is how many events of a team's log are folded before a snapshot is
	// stored: what a replica that takes the team over has to read, which takes it some
	// 100 ms. A team of 50 that streams as fast as it can stores one a second.
	startEvery = 2000
	// maxStart bounds a snapshot, compressed, so that it fits into a message with room to
	// spare (1 MB). It is that of a team with 10,000 messages and tool calls. Beyond it
	// the log is read from where the last snapshot ends.
	maxStart = 512 << 10
	// maxState bounds what is unpacked.
	maxState = 64 << 20
)

// headStart is a snapshot of a team with where in its log it is of.
type headStart struct {
	Seq    uint64          `json:"seq"`
	Stream uint64          `json:"stream"`
	Event  string          `json:"event"` // id of the event with the sequence: the log is the one that was folded
	State  json.RawMessage `json:"state"`
}

// headStarts stores the snapshots of long logs, so that whoever takes a team over need
// not read it from the beginning. They are a help for speed: without one, and whatever is
// wrong with it, the log says everything. It is safe for concurrent use.
type headStarts struct {
	kv  jetstream.KeyValue // nil: not open
	log zerolog.Logger
}

// open opens the bucket of snapshots. Where there is none, as in an installation that is
// older than it, every log is read from its beginning.
func (h *headStarts) open(ctx context.Context, conn *bus.Conn) error {
	kv, err := conn.Bucket(ctx, subject.BucketFolds)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		h.log.Warn().Err(err).Str("bucket", subject.BucketFolds).Msg("no snapshots of teams: taking over a team with a long log takes long")
	default:
		h.kv = kv
	}
	return nil
}

// load returns the snapshot of a team's log with the state that it holds, nil if there is
// none that can be used.
func (h *headStarts) load(ctx context.Context, log subject.Log) (*headStart, *teamwork.State) {
	if h.kv == nil {
		return nil, nil
	}
	e, err := h.kv.Get(ctx, subject.FoldKey(log))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	var start headStart
	var st *teamwork.State
	if err == nil {
		err = unpack(e.Value(), &start)
	}
	if err == nil {
		st, err = teamwork.Restore(start.State)
	}
	if err != nil || start.Seq == 0 || start.Stream == 0 || st.Seq() != start.Seq {
		h.log.Info().Err(err).Stringer("log", log).Msg("a team's log is read from its beginning")
		return nil, nil
	}
	return &start, st
}

// store stores a snapshot of a team as it is after the event at the position.
func (h *headStarts) store(ctx context.Context, log subject.Log, at eventlog.Cursor, eventID string, st *teamwork.State) {
	if h.kv == nil || !st.Created() || at.Stream == 0 {
		return
	}
	state, err := st.Snapshot()
	var raw []byte
	if err == nil {
		raw, err = pack(headStart{Seq: at.Seq, Stream: at.Stream, Event: eventID, State: state})
	}
	if err == nil && len(raw) <= maxStart {
		_, err = h.kv.Put(ctx, subject.FoldKey(log), raw)
	}
	if err != nil || len(raw) > maxStart {
		h.log.Info().Err(err).Stringer("log", log).Int("bytes", len(raw)).Msg("no snapshot of a team was stored")
	}
}

func pack(v headStart) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(z).Encode(v), z.Close()); err != nil {
		return nil, fmt.Errorf("pack a snapshot: %w", err)
	}
	return b.Bytes(), nil
}

func unpack(raw []byte, v *headStart) error {
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err == nil {
		err = json.NewDecoder(io.LimitReader(z, maxState)).Decode(v)
	}
	if err != nil {
		return fmt.Errorf("unpack a snapshot: %w", err)
	}
	return nil
}
