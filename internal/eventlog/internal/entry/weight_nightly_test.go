//go:build nightly

package entry

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// framed is what a gateway remembers of an entry for one dialect.
type framed struct {
	_   [176]byte
	buf []byte
}

// TestGateWeightOfAnEntry: the weights of entries are the memory that the process needs for them, with a frame of each.
func TestGateWeightOfAnEntry(t *testing.T) {
	const n = 5000
	for _, size := range []int{10, 120, 2000} {
		raw := stored(t, 3, delta("m", strings.Repeat("x", size))).Raw
		heap := func() int64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before, weights := heap(), int64(0)
		all := make([]*Entry, n)
		for i := range all {
			arrived := append(make([]byte, 120, 120+len(raw)), raw...) // behind its headers
			e, err := Decode(testLog("pure").Name(), 3, 9, arrived[120:])
			require.NoError(t, err)
			e.Memo("dialect", func() any { return []*framed{{buf: bytes.Clone(raw)}} })
			all[i] = e
			weights += int64(weight(e))
		}
		used := (heap() - before) * slack
		t.Logf("%d bytes stored: an entry costs %d bytes and weighs %d", len(raw), used/n, weights/n)
		require.Less(t, float64(used), 1.3*float64(weights))
		require.Greater(t, float64(used), 0.6*float64(weights))
		runtime.KeepAlive(all)
	}
}
