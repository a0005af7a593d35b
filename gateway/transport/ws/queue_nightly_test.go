//go:build nightly

package ws

import (
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/transport"
)

func TestWritesAllocateNothing(t *testing.T) {
	h := newHand(Options{})
	near, far := net.Pipe()
	defer far.Close()
	s := h.socket(near, bin{})
	f := numbered(0, 300)
	h.sh.list = make([]*Socket, 0, 4)
	spare := make([]*Socket, 0, 4)
	one := func() {
		s.Send(f)
		work := h.sh.list
		h.sh.list = spare
		h.buf = h.sh.round(work, h.buf)
		spare = work[:0]
	}
	one()
	require.Zero(t, testing.AllocsPerRun(1000, one), "one frame")
	batch := make([]*transport.Message, 32)
	for i := range batch {
		batch[i] = f
	}
	many := func() { s.Send(batch...); one() }
	many()
	require.Zero(t, testing.AllocsPerRun(1000, many), "33 frames")
	s.Abort()
}

func TestIdleSocketIsOneGoroutine(t *testing.T) {
	r := newRig(t, Options{}, false)
	before := runtime.NumGoroutine()
	const n = 200
	for range n {
		p, e := r.pair()
		require.Equal(t, 1, e.Send(numbered(0, 10)))
		_, _, err := p.next()
		require.NoError(t, err)
	}
	before++ // the one that asks
	require.Eventually(t, func() bool { return runtime.NumGoroutine()-before <= n }, maxWait, 5*time.Millisecond)
}
