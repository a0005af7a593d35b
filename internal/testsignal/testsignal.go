// Package testsignal lets production code signal a moment to tests, so that they need not poll for it.
//
// A type holds a Signal as a field, whose zero value is ready, and sends where the moment is: when a copy has applied a change,
// say. Without a test that has armed the signal, Send costs one atomic load. Signals carry nothing that production code needs:
// no behaviour may depend on one.
package testsignal

import (
	"sync"
	"sync/atomic"
	"time"
)

// maxWait bounds a wait: it is longer than any machine takes for what a test waits for.
const maxWait = 60 * time.Second

// TB is the part of testing.TB that a waiter needs. Production code must not link package testing.
type TB interface {
	Helper()
	Cleanup(f func())
	Fatalf(format string, args ...any)
}

// Signal tells of a moment, with a value. The zero value does nothing. It is safe for concurrent use and must not be copied.
type Signal[T any] struct{ to atomic.Pointer[Waiter[T]] }

// Send tells the test that has armed the signal. It never blocks, so that it may be called with a lock held.
func (s *Signal[T]) Send(v T) {
	if w := s.to.Load(); w != nil {
		w.add(v)
	}
}

// Arm returns a waiter for all that is sent from now on, until the end of the test or Disarm. A signal has one waiter at a time.
func (s *Signal[T]) Arm(t TB) *Waiter[T] {
	t.Helper()
	w := &Waiter[T]{t: t, from: s, news: make(chan struct{}, 1)}
	if !s.to.CompareAndSwap(nil, w) {
		t.Fatalf("the signal is armed already")
	}
	t.Cleanup(w.Disarm)
	return w
}

// Waiter receives the values of a signal, each once and in order. One goroutine may wait at a time.
type Waiter[T any] struct {
	t    TB
	from *Signal[T]
	news chan struct{}

	mu     sync.Mutex
	values []T
}

// Disarm ends the waiter: the signal does nothing again, and can be armed again.
func (w *Waiter[T]) Disarm() { w.from.to.CompareAndSwap(w, nil) }

func (w *Waiter[T]) add(v T) {
	w.mu.Lock()
	w.values = append(w.values, v)
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

func (w *Waiter[T]) take() (v T, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.values) == 0 {
		return v, false
	}
	v, w.values = w.values[0], w.values[1:]
	return v, true
}

// Next waits for the next value. The test fails if none comes.
func (w *Waiter[T]) Next() T {
	w.t.Helper()
	late := time.NewTimer(maxWait)
	defer late.Stop()
	for {
		if v, ok := w.take(); ok {
			return v
		}
		select {
		case <-w.news:
		case <-late.C:
			w.t.Fatalf("no signal came")
		}
	}
}

// Until returns when is reports true: it is asked at once, and again after each value. The signal has to be armed before the
// state can change that is looks at. The test fails if no further value comes.
func (w *Waiter[T]) Until(is func() bool) {
	w.t.Helper()
	for !is() {
		w.Next()
	}
}
