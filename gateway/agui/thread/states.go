package thread

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Bounds of the folds that are kept. One has at most 2 MiB of messages, and usually some KiB.
const (
	stateBytes = 64 << 20
	stateMarks = 16
)

// state names the fold of a thread.
type state struct {
	log     subject.Log
	variant fold.Variant
}

func newStates() *stream.Folds[state, *fold.Thread] {
	return stream.NewFolds(stateBytes, stateMarks, func(s state) *fold.Thread { return fold.Of(s.log.Kind, s.variant) })
}

// folded calls visit with the fold of the thread up to its end, at least up to last. visit must not keep the fold.
func (t *Threads) folded(ctx context.Context, at Place, last eventlog.Cursor, visit func(*fold.Thread, eventlog.Cursor) error) error {
	read := func(after eventlog.Cursor, take func(event.Event)) error {
		_, err := t.read(ctx, at, after, last.Seq, take)
		return err
	}
	return t.states.End(state{at.Log, at.Variant}, last.Seq, read, visit)
}

// before returns the fold of the thread up to the event with the sequence, which is the caller's. It keeps the messages that the
// kept fold has, too, once for both. first is the oldest event where older ones have expired.
func (t *Threads) before(ctx context.Context, at Place, seq uint64) (th *fold.Thread, end eventlog.Cursor, first uint64, err error) {
	key := state{at.Log, at.Variant}
	th, end, err = t.states.Before(key, seq, func(after eventlog.Cursor, take func(event.Event)) error {
		first, err = t.read(ctx, at, after, seq, take)
		return err
	})
	if err != nil {
		return nil, end, first, err
	}
	return th, end, first, t.states.End(key, 0, nil, func(tip *fold.Thread, _ eventlog.Cursor) error {
		th.Adopt(tip)
		return nil
	})
}

// read reads the log of a thread up to the event with the sequence. A log whose beginning has expired is read from what it has.
func (t *Threads) read(ctx context.Context, at Place, after eventlog.Cursor, last uint64, take func(event.Event)) (first uint64, err error) {
	first, err = stream.ReadLeft(ctx, t.g.Log, at.Log, after, last, func(e *eventlog.Entry) error {
		take(e.Event)
		return nil
	})
	return first, stream.Gone(err)
}
