//go:build nightly

package service_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/service"
)

// A server that floods costs a bounded amount of memory.
func TestAFloodTakesBoundedMemory(t *testing.T) {
	for _, tool := range []string{"flood_line", "flood_notes", "flood_long"} {
		t.Run(tool, func(t *testing.T) {
			r := start(t, service.Config{Servers: []mcpservers.Config{program("bad", "good")}})
			r.await(t, "bad_echo")
			stop := make(chan struct{})
			var watch sync.WaitGroup
			var most uint64
			watch.Go(func() { most = peak(stop) })
			before := heap()
			r.fails(t, newCall(t, "bad_"+tool, nil), fault.ToolLost)
			close(stop)
			watch.Wait()
			t.Logf("heap %d MiB before, %d MiB at most", before>>20, most>>20)
			require.Less(t, most, before+600<<20)
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// peak returns the largest heap until stop is closed.
func peak(stop <-chan struct{}) (most uint64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		most = max(most, heap())
		select {
		case <-stop:
			return most
		case <-tick.C:
		}
	}
}
