package thread

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect/agui"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxStates bounds the threads whose folds are kept. One has at most 2 MiB of messages, and usually some KiB.
const maxStates = 256

// states are the folds of the threads that were asked for last. Nothing depends on them but speed.
type states struct {
	g *binding.Gateway

	mu    sync.Mutex
	order list.List // of *state, the last used one first
	byKey map[key]*state
}

type key struct {
	log     subject.Log
	variant agui.Variant
}

// state is the fold of a thread up to a position.
type state struct {
	key key
	at  *list.Element

	mu     sync.Mutex
	thread *agui.Thread
	end    eventlog.Cursor
	first  uint64 // the oldest event, where older ones have expired
}

func newStates(g *binding.Gateway) *states { return &states{g: g, byKey: map[key]*state{}} }

func (s *states) get(log subject.Log, v agui.Variant) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{log, v}
	st, ok := s.byKey[k]
	if !ok {
		st = &state{key: k, thread: agui.New(v)}
		st.at, s.byKey[k] = s.order.PushFront(st), st
	}
	s.order.MoveToFront(st.at)
	for s.order.Len() > maxStates {
		if last, ok := s.order.Back().Value.(*state); ok {
			s.order.Remove(last.at)
			delete(s.byKey, last.key)
		}
	}
	return st
}

// at calls visit with the fold of the log up to its end, at least up to last. visit must not keep the fold.
func (s *states) at(ctx context.Context, log subject.Log, v agui.Variant, last eventlog.Cursor, visit func(*agui.Thread, eventlog.Cursor) error) error {
	st := s.get(log, v)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.end.Seq < last.Seq {
		if err := s.read(ctx, st, last.Seq); err != nil {
			return err
		}
	}
	return visit(st.thread, st.end)
}

// before returns the fold of the log up to the event with the sequence. The caller owns it.
func (s *states) before(ctx context.Context, log subject.Log, v agui.Variant, seq uint64) (*state, error) {
	st := &state{key: key{log, v}, thread: agui.New(v)}
	if seq == 0 {
		return st, nil
	}
	return st, s.read(ctx, st, seq)
}

// errFar ends the reading of a log.
var errFar = errors.New("far enough")

// read goes on with a fold up to the event with the sequence. A log whose beginning has expired is read from what it has.
func (s *states) read(ctx context.Context, st *state, upTo uint64) error {
	visit := func(e *eventlog.Entry) error {
		if e.Sequence > upTo {
			return errFar
		}
		st.thread.Fold(e.Event)
		st.end = e.Cursor()
		return nil
	}
	err := s.g.Log.Read(ctx, st.key.log, st.end, visit)
	if cut, ok := errors.AsType[*eventlog.TruncatedError](err); ok {
		st.first = cut.First
		err = s.g.Log.Read(ctx, st.key.log, eventlog.Cursor{Seq: cut.First - 1}, visit)
	}
	if errors.Is(err, errFar) {
		err = nil
	}
	return gone(err)
}
