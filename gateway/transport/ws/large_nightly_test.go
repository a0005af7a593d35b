//go:build nightly

package ws

import (
	"bytes"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLargeMessagesHaveBoundedMemory: five hundred peers that send far too much at once
// cost no more than the hub has room for.
func TestLargeMessagesHaveBoundedMemory(t *testing.T) {
	const peers, limit, size, room = 500, 128 << 10, 256 << 10, 8
	r := newRig(t, Options{ // the peers share two processors with other tests: none is late
		ReadLimit: 16 << 10, LargeMessages: room, MessageTimeout: 4 * maxWait, PingInterval: 4 * maxWait, PongTimeout: 4 * maxWait,
	}, false)
	r.roomy(Limits{Message: limit, Drain: 1 << 20})
	ends := make([]*side, peers)
	conns := make([]*peer, peers)
	for i := range peers {
		conns[i], ends[i] = r.pair()
	}
	begin := append(masked(0x01, bytes.Repeat([]byte("x"), size-1)), masked(opPing, nil)...)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for i := range peers {
		wg.Go(func() { // all have begun before any ends
			_, err := conns[i].Write(begin)
			op, _, pongErr := conns[i].next() // the socket has read all that came before the ping
			if err != nil || pongErr != nil || op != opPong {
				t.Errorf("%v, %v, opcode %x", err, pongErr, op)
			}
		})
	}
	wg.Wait()
	require.Eventually(t, func() bool { return len(r.hub.large) == 0 }, maxWait, time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&now)
	held := int64(now.HeapAlloc) - int64(before.HeapAlloc)
	require.Less(t, held, int64(peers*(40<<10)), "of what is skipped the ends are kept")
	for i := range peers {
		conns[i].send(masked(0x80, []byte("x")))
		require.EqualValues(t, size, receive(t, ends[i].large).Size)
	}
}
