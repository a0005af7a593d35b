package thread

import (
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Bounds of the folds that are kept. One has at most 2 MiB of messages, and usually some KiB.
const (
	maxStates     = 1024
	maxStateBytes = 64 << 20
	markEvery     = 1000 // events between two marks of a fold
	maxMarks      = 16   // of one fold
)

// states are the folds of the threads that were asked for last. Nothing depends on them but speed.
type states struct {
	g *binding.Gateway

	mu    sync.Mutex
	bytes int       // of all, about
	order list.List // of *state, the last used one first
	byKey map[key]*state
}

type key struct {
	log     subject.Log
	variant fold.Variant
}

// state is the fold of a thread up to a position.
type state struct {
	key   key
	at    *list.Element
	bytes int // that states counts for it

	mu     sync.Mutex
	thread *fold.Thread
	end    eventlog.Cursor
	marks  []mark // the oldest first
	every  uint64 // events between two of them; 0 = none are kept
	first  uint64 // the oldest event, where older ones have expired
}

// mark is a fold up to an earlier position: who comes back there needs no fold from the beginning.
type mark struct {
	thread *fold.Thread
	end    eventlog.Cursor
}

func newStates(g *binding.Gateway) *states { return &states{g: g, byKey: map[key]*state{}} }

func (s *states) get(log subject.Log, v fold.Variant) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{log, v}
	st, ok := s.byKey[k]
	if !ok {
		st = &state{key: k, thread: fold.Of(log.Kind, v), every: markEvery}
		st.at, s.byKey[k] = s.order.PushFront(st), st
	}
	s.order.MoveToFront(st.at)
	s.bound()
	return st
}

// bound forgets the folds that were used longest ago. The caller has locked.
func (s *states) bound() {
	for s.order.Len() > 1 && (s.order.Len() > maxStates || s.bytes > maxStateBytes) {
		last, ok := s.order.Back().Value.(*state)
		if !ok {
			return
		}
		s.order.Remove(last.at)
		delete(s.byKey, last.key)
		s.bytes -= last.bytes
	}
}

// weigh counts the bytes of a fold that has grown. The caller has locked the fold.
func (s *states) weigh(st *state) {
	n := st.thread.Size()
	for _, m := range st.marks {
		n += m.thread.Size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[st.key] != st {
		return // it is forgotten
	}
	s.bytes += n - st.bytes
	st.bytes = n
	s.bound()
}

// at calls visit with the fold of the log up to its end, at least up to last. visit must not keep the fold.
func (s *states) at(ctx context.Context, log subject.Log, v fold.Variant, last eventlog.Cursor, visit func(*fold.Thread, eventlog.Cursor) error) error {
	st := s.get(log, v)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.end.Seq < last.Seq {
		err := s.read(ctx, st, last.Seq)
		s.weigh(st)
		if err != nil {
			return err
		}
	}
	return visit(st.thread, st.end)
}

// before returns the fold of the log up to the event with the sequence. The caller owns it.
func (s *states) before(ctx context.Context, log subject.Log, v fold.Variant, seq uint64) (*state, error) {
	st := &state{key: key{log, v}, thread: fold.Of(log.Kind, v)}
	if seq == 0 {
		return st, nil
	}
	if m, ok := s.get(log, v).before(seq); ok {
		st.thread, st.end = m.thread, m.end
	}
	return st, s.read(ctx, st, seq)
}

// share has the fold keep the messages that the kept fold of the log has, too, once for both.
func (s *states) share(log subject.Log, v fold.Variant, thread *fold.Thread) {
	st := s.get(log, v)
	st.mu.Lock()
	defer st.mu.Unlock()
	thread.Adopt(st.thread)
}

// before returns a copy of the newest mark up to the event with the sequence.
func (st *state) before(seq uint64) (m mark, ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, one := range slices.Backward(st.marks) {
		if one.end.Seq <= seq {
			return mark{one.thread.Clone(""), one.end}, true
		}
	}
	return m, false
}

// folded notes that the fold stands at the cursor. The caller has locked the state.
func (st *state) folded(at eventlog.Cursor) {
	if st.end = at; st.every == 0 || at.Seq%st.every != 0 {
		return
	}
	st.marks = append(st.marks, mark{st.thread.Clone(""), at})
	if len(st.marks) <= maxMarks {
		return
	}
	st.every *= 2
	st.marks = slices.DeleteFunc(st.marks, func(m mark) bool { return m.end.Seq%st.every != 0 })
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
		st.folded(e.Cursor())
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
