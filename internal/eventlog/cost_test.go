package eventlog

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// tally0 is a Sink that takes everything and allocates nothing.
type tally0 struct{ n, calls int }

func (c *tally0) Deliver(batch []*Entry) int {
	c.n += len(batch)
	c.calls++
	return len(batch)
}
func (c *tally0) Truncated(uint64) {}
func (c *tally0) Failed(error)     {}
func (c *tally0) CaughtUp(uint64)  {}

// uncompared returns the tail of a watched log, and puts its next comparison with the stream off for the length of a test.
func uncompared(t *testing.T, s *Store, log subject.Log) *tail {
	t.Helper()
	tl := s.tail(tailKey(log))
	require.Eventually(t, func() bool {
		tl.mu.Lock()
		defer tl.mu.Unlock()
		if tl.checkAt.IsZero() { // its start, which sets the first one, goes on
			return false
		}
		tl.checkAt = time.Now().Add(time.Hour)
		return true
	}, time.Minute, time.Millisecond)
	return tl
}

func TestFanOutAllocatesNothingPerViewer(t *testing.T) {
	conn := single(t)
	s, log := newStore(t, conn, Options{}), testLog("allocs")
	first := newRecorder(-1)
	defer watch(s, log, Cursor{}, first).Close()
	first.wait(t, "caught up", func() bool { return len(first.caught) == 1 })
	tl := uncompared(t, s, log) // later events are not in the stream
	for range 500 {
		v := s.Watch(log, Cursor{}, &tally0{})
		defer v.Close()
	}
	require.Eventually(t, func() bool {
		tl.mu.Lock()
		defer tl.mu.Unlock()
		return len(tl.live) == 501
	}, time.Minute, time.Millisecond)
	const runs = 200
	entries := make([]*Entry, runs+1) // AllocsPerRun warms up with one run more
	for i := range entries {
		entries[i] = stored(t, log, uint64(i+1), delta("m", "text"))
	}
	next := 0
	allocs := testing.AllocsPerRun(runs, func() {
		tl.emit(healGap, entries[next])
		next++
	})
	require.Less(t, allocs, 50.0, "the server in this process allocates as well; one for each viewer would be 500")
	first.reach(t, runs+1)
}

func TestNoGoroutinePerLogOrViewer(t *testing.T) {
	conn := single(t)
	s := newStore(t, conn, Options{})
	before := runtime.NumGoroutine()
	for i := range 100 {
		log := testLog(fmt.Sprintf("g%d", i))
		for range 3 {
			r := newRecorder(-1)
			defer watch(s, log, Cursor{}, r).Close()
			defer r.wait(t, "caught up", func() bool { return len(r.caught) == 1 })
		}
	}
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, tl := range s.tails {
			tl.mu.Lock()
			live := len(tl.live)
			tl.mu.Unlock()
			if live != 3 {
				return false
			}
		}
		return true
	}, time.Minute, 5*time.Millisecond)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, time.Minute, 5*time.Millisecond)
}

func TestHeadsListTheLogsOfOneTenant(t *testing.T) {
	conn := single(t)
	s := newStore(t, conn, Options{})
	none, err := s.Heads(t.Context(), id.DefaultTenant, id.KindSession)
	require.NoError(t, err)
	require.Empty(t, none)
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	for i := range 40 { // several shards, several logs in each
		log := testLog(fmt.Sprintf("h%02d", i))
		fill(t, s, log, 0, 1+i%3)
		log.Tenant = other
		fill(t, s, log, 0, 1)
	}
	heads, err := s.Heads(t.Context(), id.DefaultTenant, id.KindSession)
	require.NoError(t, err)
	require.Len(t, heads, 40)
	for i, e := range heads {
		log, err := subject.ParseName(e.Subject)
		require.NoError(t, err)
		require.Equal(t, id.DefaultTenant, log.Tenant)
		end, err := s.Last(t.Context(), log)
		require.NoError(t, err)
		require.Equal(t, end, e.Cursor())
		require.True(t, i == 0 || !e.Time.After(heads[i-1].Time), "newest first")
	}
}
