package eventlog

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// recorder is a Sink that remembers all calls, and may be slow.
type recorder struct {
	mu      sync.Mutex
	changed *sync.Cond
	entries []*Entry
	last    uint64 // Sequence of the newest
	lag     []uint64
	caught  []uint64
	failed  error
	room    int // entries that it still accepts, -1 = any number
	full    int // how often it was full
	calls   int // callbacks running, must never be two
}

func newRecorder(room int) *recorder {
	r := &recorder{room: room}
	r.changed = sync.NewCond(&r.mu)
	return r
}

func (r *recorder) enter() {
	r.mu.Lock()
	if r.calls++; r.calls > 1 {
		panic("two callbacks at a time")
	}
	if r.failed != nil {
		panic("a callback after Failed")
	}
}

func (r *recorder) leave() {
	r.calls--
	r.changed.Broadcast()
	r.mu.Unlock()
}

func (r *recorder) Deliver(batch []*Entry) int {
	r.enter()
	defer r.leave()
	n := len(batch)
	if r.room >= 0 {
		n = min(n, r.room)
		r.room -= n
	}
	if n < len(batch) {
		r.full++
	}
	for _, e := range batch[:n] {
		r.entries = append(r.entries, e)
		r.last = e.Sequence
	}
	return n
}

func (r *recorder) Truncated(first uint64) {
	r.enter()
	defer r.leave()
	r.lag = append(r.lag, first)
}

func (r *recorder) Failed(err error) {
	r.enter()
	defer r.leave()
	r.failed = err
}

func (r *recorder) CaughtUp(seq uint64) {
	r.enter()
	defer r.leave()
	r.caught = append(r.caught, seq)
}

// allow gives the sink room for n more.
func (r *recorder) allow(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room = n
}

// wait returns when pred, called under the lock, is true.
func (r *recorder) wait(t testing.TB, what string, pred func() bool) {
	t.Helper()
	r.waitWithin(t, time.Minute, what, pred)
}

func (r *recorder) waitWithin(t testing.TB, d time.Duration, what string, pred func() bool) {
	t.Helper()
	expired := false
	timer := time.AfterFunc(d, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		expired = true
		r.changed.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !pred() {
		if expired {
			require.FailNow(t, "waited in vain for "+what, "last %d, %d entries, caught %v, truncated %v, failed %v, full %d", r.last, len(r.entries), r.caught, r.lag, r.failed, r.full)
		}
		r.changed.Wait()
	}
}

func (r *recorder) reach(t testing.TB, seq uint64) {
	t.Helper()
	r.wait(t, fmt.Sprintf("seq %d", seq), func() bool { return r.last >= seq })
}

// exact checks that the entries are those after the position, without gaps or duplicates.
func (r *recorder) exact(t testing.TB, after uint64) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		require.Equal(t, after+1, e.From)
		after = e.Sequence
	}
}

func watch(s *Store, log subject.Log, after Cursor, r *recorder) *Viewer {
	return s.Watch(log, after, r)
}

// stands waits for the viewer's position, which follows the return of Deliver.
func stands(t testing.TB, v *Viewer, seq uint64) {
	t.Helper()
	require.Eventually(t, func() bool { return v.Position().Seq == seq }, time.Minute, time.Millisecond)
}

func requireDense(t require.TestingT, out []*Entry, after uint64) {
	for i, e := range out {
		require.Equal(t, after+uint64(i)+1, e.Sequence)
	}
}
