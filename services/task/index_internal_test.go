package task

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestTheIndexForgets(t *testing.T) {
	t.Parallel()
	x, now := newIndex(), time.Now()
	a, b := taskLog(id.DefaultTenant, "a"), taskLog(id.DefaultTenant, "b")
	x.put(a, place{agent: "w", attempt: 1, seen: now})
	x.put(b, place{agent: "w", attempt: 1, seen: now.Add(-time.Hour)})
	n, _ := x.load(id.DefaultTenant, "w")
	require.Equal(t, 2, n)
	x.forget(now.Add(-time.Minute))
	require.Len(t, x.all(), 1)
	x.put(a, place{seen: now})
	n, _ = x.load(id.DefaultTenant, "w")
	require.Zero(t, n)
	x.put(a, place{agent: "w", seen: now})
	x.drop(a, now)
	n, idle := x.load(id.DefaultTenant, "w")
	require.Zero(t, n)
	require.Equal(t, now, idle)
	x.forget(now.Add(time.Second))
	require.Empty(t, x.idle)
	require.Empty(t, x.held)
}
