//go:build unix

package gateway_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bounds of what an idle socket costs; the clients are in another process.
const (
	idleSockets = 500
	idleBytes   = 16 << 10
)

// An idle socket has one goroutine, with a small stack, and little memory.
func TestGateIdleSocket(t *testing.T) {
	r, _ := startMulti(t)
	measure := func() (bytes, stacks, routines int64) {
		runtime.GC()
		runtime.GC() // the second one frees the contents of pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc), int64(m.StackInuse), int64(runtime.NumGoroutine())
	}
	heap, stacks, routines := measure()
	defer sockets(t, r.addr, pathSessions, idleSockets)()
	eventually(t, "they are greeted", func() bool { return r.metric("waggle_gateway_frames_out_total") >= idleSockets })
	eventually(t, "only the goroutines that read are left", func() bool {
		_, _, now := measure()
		return now-routines <= idleSockets+idleSockets/10
	})
	heapNow, stacksNow, routinesNow := measure()
	each := func(n int64) int64 { return n / idleSockets }
	t.Logf("a socket: %d bytes of heap, %d of stack; %d goroutines for %d", each(heapNow-heap), each(stacksNow-stacks), routinesNow-routines, idleSockets)
	require.Less(t, each(heapNow-heap+stacksNow-stacks), int64(idleBytes))
}
