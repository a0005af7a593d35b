package process

import (
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
		stop := thrifty(func(asked string) string {
			if asked == name {
				return "200"
			}
			return ""
		})
		require.Equal(t, 100, percent(), name)
		stop()
	}
	stop := thrifty(func(string) string { return "" })
	require.Equal(t, frugal, percent())
	require.NotZero(t, allocated())
	stop()
	require.Equal(t, 100, percent())
}
