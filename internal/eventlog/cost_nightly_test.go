//go:build nightly

package eventlog

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
