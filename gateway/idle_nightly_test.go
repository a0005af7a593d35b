//go:build unix && nightly

package gateway_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Bounds of what an idle socket costs; the clients are in another process. Measured: 6 KB of heap, and 9 KB for one that is the
// only one on its log, with 4 KB of stack; the race detector and a busy machine double the stack.
const (
	idleSockets = 500
	idleHeap    = 11 << 10
	idleStack   = 12 << 10
)

// An idle socket has one goroutine, with a small stack, and little memory, whatever it speaks.
func TestGateIdleSocket(t *testing.T) {
	t.Run("several sessions, none opened", func(t *testing.T) {
		r, _ := startMulti(t)
		r.idle(pathSessions)
	})
	t.Run("MyAgent, none opened", func(t *testing.T) {
		r, _ := withMyAgent(t)
		r.idle(pathSessions)
	})
	t.Run("ORBIT, one log", func(t *testing.T) {
		r := start(t)
		r.idle("/ws?session=" + r.session("default", ordinary).Entity.String())
	})
	t.Run("ORBIT, a log each", func(t *testing.T) {
		r := start(t)
		l := r.session("default")
		for i := range idleSockets {
			own := l
			own.Entity = id.EntityFromExternal(fmt.Sprint("idle-", i))
			require.NoError(t, r.append(own, "created", event.SessionCreatedData{Dialect: "orbit"}))
		}
		r.idle("/ws?session=idle-{n}")
	})
}

// idle opens idle sockets and checks what each costs.
func (r *rig) idle(path string) {
	r.t.Helper()
	measure := func() (bytes, stacks, routines int64) {
		runtime.GC()
		runtime.GC() // the second one frees the contents of pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc), int64(m.StackInuse), int64(runtime.NumGoroutine())
	}
	heap, stacks, routines := measure()
	defer sockets(r.t, r.addr, path, idleSockets)()
	eventually(r.t, "they are greeted", func() bool { return r.metric("waggle_gateway_frames_out_total") >= idleSockets })
	each := func(n int64) int64 { return n / idleSockets }
	var heapNow, stacksNow, routinesNow int64
	defer func() {
		r.t.Logf("a socket: %d bytes of heap, %d of stack; %d goroutines for %d", each(heapNow-heap), each(stacksNow-stacks), routinesNow-routines, idleSockets)
	}()
	eventually(r.t, "only the goroutines that read are left, and what greetings took is free", func() bool {
		heapNow, stacksNow, routinesNow = measure()
		return routinesNow-routines <= idleSockets+idleSockets/10 && each(heapNow-heap) < idleHeap && each(stacksNow-stacks) < idleStack
	})
}
