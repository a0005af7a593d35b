package eventlog

import (
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Sink receives the entries of a Viewer. The Store's own goroutines call its methods, one at a time; they must not
// block. They may call Resume, Position and End of their Viewer, but not Close, and must not take a lock that another
// goroutine holds around Close.
type Sink interface {
	// Deliver takes the next entries, in order, without gaps or duplicates, and returns the number of accepted ones.
	// If it does not accept all, the viewer is full: deliveries stop until Viewer.Resume. Then they continue with the
	// first entry that was not accepted, at the sink's own pace, with consecutive deltas of one message merged, until
	// the viewer is live again. The slice is valid only during the call; its entries stay valid and must not be
	// modified. A tombstone is the last entry of its log and is delivered at once: entries that the sink has not seen
	// before it are gone, without a call of Truncated.
	Deliver(batch []*Entry) (accepted int)
	// Truncated reports that the entries between the viewer's position and first have expired; deliveries continue
	// with first.
	Truncated(first uint64)
	// Failed reports that the viewer cannot continue: ErrClosed, ErrBeyondEnd, or the log could not be read for
	// Options.Retry. Only Close may follow.
	Failed(err error)
	// CaughtUp reports that everything up to seq, the end of the log, has been delivered. It is called once, when the
	// viewer goes live for the first time.
	CaughtUp(seq uint64)
}

// viewerState is the state of a Viewer.
type viewerState uint8

const (
	stateCatching viewerState = iota // waits for the next batch from ring or stream
	stateLive                        // gets new entries as they arrive
	stateFull                        // waits for Resume
	stateOver                        // failed or closed
)

// Viewer is one reader of a log. All its methods are safe for concurrent use.
type Viewer struct {
	t    *tail
	sink Sink

	// turn is held while a callback runs.
	turn sync.Mutex

	mu      sync.Mutex
	state   viewerState
	at      Cursor
	calling bool // within Deliver
	again   bool // Resume was called during Deliver
	merging bool // was full and has not been live since
	caught  bool // CaughtUp has been called
	queued  bool // in a group

	index int // in tail.live, -1 = absent; guarded by tail.mu
}

// Watch delivers the log's entries after the position to the sink: history, then live, exactly once and in order,
// until Close. It returns at once. A log that does not exist yet is empty. The viewer fails with ErrBeyondEnd if the
// log ends before the position, and waits for a broken connection without limit. The first callback may come before
// Watch returns.
func (s *Store) Watch(log subject.Log, after Cursor, sink Sink) *Viewer {
	v := &Viewer{sink: sink, at: after, index: -1}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		v.t = newTail(s, log)
		go v.fail(ErrClosed)
		return v
	}
	t, known := s.tails[tailKey(log)]
	if !known {
		t = s.begin(log)
	}
	v.t = t
	t.mu.Lock()
	t.viewers[v] = struct{}{}
	s.met.viewers.Inc()
	ready := t.ready
	t.mu.Unlock()
	s.mu.Unlock()
	switch {
	case !known:
		s.pool(log).Submit(t.start)
	case ready:
		t.enqueue(v)
	}
	return v
}

// Resume tells a full viewer that the sink has room again. Otherwise it does nothing.
func (v *Viewer) Resume() {
	v.mu.Lock()
	full := v.state == stateFull
	if full {
		v.state = stateCatching
	} else if v.calling {
		v.again = true
	}
	v.mu.Unlock()
	if full {
		v.t.enqueue(v)
	}
}

// Position returns the position after the last entry that the sink accepted.
func (v *Viewer) Position() Cursor {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.at
}

// End returns the seq of the newest entry of the log that the Store knows, zero before it has read the end. A sink may call it.
func (v *Viewer) End() uint64 {
	v.t.mu.Lock()
	defer v.t.mu.Unlock()
	return v.t.newest()
}

// Close ends the viewer. When it returns no callback runs or will run. It must not be called from a callback.
func (v *Viewer) Close() {
	v.mu.Lock()
	v.state = stateOver
	v.mu.Unlock()
	v.turn.Lock()   // a callback may be running
	v.turn.Unlock() //nolint:staticcheck // waiting is the purpose
	v.t.leave(v)
}

// offer delivers entries to a live viewer and takes it out of live mode if it does not accept all.
func (v *Viewer) offer(entries []*Entry) {
	v.turn.Lock()
	defer v.turn.Unlock()
	v.mu.Lock()
	next := v.at.Seq + 1
	for len(entries) > 0 && entries[0].Sequence < next {
		entries = entries[1:]
	}
	if v.state != stateLive || len(entries) == 0 {
		v.mu.Unlock()
		return
	}
	follows := entries[0].Sequence == next
	v.calling, v.again = follows, false
	v.mu.Unlock()
	if !follows || !v.hand(entries) {
		v.t.demote(v)
	}
}

// hand calls Deliver and updates the state. It returns whether the sink took all. turn is held and calling is set.
func (v *Viewer) hand(entries []*Entry) bool {
	n := min(max(v.sink.Deliver(entries), 0), len(entries))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calling = false
	if n > 0 {
		v.at = entries[n-1].Cursor()
	}
	if n == len(entries) {
		return true
	}
	v.merging = true
	if v.state != stateOver {
		v.state = stateFull
		if v.again {
			v.state = stateCatching
		}
	}
	return false
}

// skip tells the sink that the entries before first are gone.
func (v *Viewer) skip(first, stream uint64) {
	v.turn.Lock()
	defer v.turn.Unlock()
	v.mu.Lock()
	ok := v.state == stateCatching && v.at.Seq+1 < first
	if ok {
		v.at = Cursor{Seq: first - 1, Stream: stream}
	}
	v.mu.Unlock()
	if ok {
		v.sink.Truncated(first)
	}
}

// fail ends the viewer with an error.
func (v *Viewer) fail(err error) {
	v.turn.Lock()
	defer v.turn.Unlock()
	v.mu.Lock()
	over := v.state == stateOver
	v.state = stateOver
	v.mu.Unlock()
	if !over {
		v.sink.Failed(err)
		v.t.leave(v)
	}
}
