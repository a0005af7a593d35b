package memory

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryIsReturnedTwiceAfterWork(t *testing.T) {
	t.Parallel()
	given := 0
	r := returner{give: func() { given++ }}
	now := uint64(0)
	look := func(more uint64) int {
		now += more
		r.look(now)
		return given
	}
	require.Zero(t, look(calm), "it has just started")
	require.Zero(t, look(busy), "it works")
	require.Zero(t, look(calm+1), "it still works")
	require.Equal(t, 1, look(0))
	require.Equal(t, 1, look(0))
	require.Equal(t, 1, look(0))
	require.Equal(t, 2, look(0), "caches have expired")
	for range busy/calm - 1 {
		require.Equal(t, 2, look(calm), "it has nothing to return")
	}
	require.Equal(t, 3, look(calm), "small work adds up")
	require.Equal(t, 3, look(10*busy))
	require.Equal(t, 4, look(0), "the work is over")
	for range 2 {
		require.Equal(t, 4, look(0))
	}
	require.Equal(t, 5, look(0))
	for range 100 {
		require.Equal(t, 5, look(0), "a process at rest does nothing")
	}
}

func TestTheEnvironmentDecidesAboutCollections(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		stop := Thrifty(func(asked string) string {
			if asked == name {
				return "200"
			}
			return ""
		})
		require.Equal(t, 100, percent(), name)
		stop()
	}
	stop := Thrifty(func(string) string { return "" })
	require.GreaterOrEqual(t, percent(), frugal)
	require.NotZero(t, allocated())
	stop()
	require.Equal(t, 100, percent())
}

func TestASmallHeapHasRoomBetweenCollections(t *testing.T) {
	t.Parallel()
	require.Equal(t, mostPercent, percentFor(0))
	require.Equal(t, mostPercent, percentFor(1<<20))
	require.Equal(t, 200, percentFor(room/2))
	require.Equal(t, 100, percentFor(room))
	require.Equal(t, frugal, percentFor(2*room))
	require.Equal(t, frugal, percentFor(1<<40))

	var set []int
	p := &pacer{percent: frugal, set: func(percent int) int { set = append(set, percent); return 0 }}
	for _, live := range []uint64{room, room * 95 / 100, room / 2, 4 * room, 8 * room} {
		p.adapt(live)
	}
	require.Equal(t, []int{100, 200, frugal}, set, "small differences change nothing")
	p.stop(100)
	p.adapt(room / 2)
	require.Equal(t, []int{100, 200, frugal, 100}, set, "it has stopped")
}

// The pacer adapts after each collection, not only after the first.
func TestThePacerGoesOn(t *testing.T) {
	t.Parallel()
	adapted := make(chan int, 1000)
	p := &pacer{set: func(percent int) int { adapted <- percent; return 0 }}
	p.afterEach()
	for range 3 {
		p.mu.Lock()
		p.percent = 0 // any percentage differs from it
		p.mu.Unlock()
		runtime.GC()
		require.GreaterOrEqual(t, <-adapted, frugal)
	}
	p.stop(100)
	close(adapted) // nothing is set any more
	last := 0
	for last = range adapted {
		require.GreaterOrEqual(t, last, frugal)
	}
	require.Equal(t, 100, last)
}
