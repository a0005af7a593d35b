package ws

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// roomy gives the sockets of a rig limits of their own.
func (r *rig) roomy(l Limits) { r.limits = l }

// letters is text of n bytes of which every part is different.
func letters(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d,", i)
	}
	return b.String()[:n]
}

// pieces cuts a message into frames.
func pieces(message string, size int) (out []byte) {
	op := byte(0x01)
	for len(message) > size {
		out = append(out, masked(op, []byte(message[:size]))...)
		out = append(out, masked(opPing, nil)...)
		message, op = message[size:], 0
	}
	return append(out, masked(0x80|op, []byte(message))...)
}

// TestLargeMessages: a socket with limits of its own reads larger messages whole, skips
// those beyond, whose ends it keeps, and continues; it ends at one that never does.
func TestLargeMessages(t *testing.T) {
	const limit, drain = 40_000, 100_000
	r := newRig(t, Options{ReadLimit: 1024, LargeMessages: 1, CloseTimeout: 50 * time.Millisecond}, false)
	r.roomy(Limits{Message: limit, Drain: drain})
	p, e := r.pair()
	sent := make(chan string, 100)
	go func() {
		for _, n := range []int{1024, 1025, limit - 1, limit, limit + 1, limit + 100, limit + endBytes, limit + 2*endBytes + 1, 3, drain, 1024, limit} {
			for _, size := range []int{n, 1000, 70_000} {
				_, _ = p.Write(pieces(letters(n), size))
				sent <- letters(n)
			}
		}
		close(sent)
		_, _ = p.Write(masked(opText, []byte(letters(drain+1))))
	}()
	go func() {
		for {
			if _, _, err := p.next(); err != nil {
				return
			}
		}
	}()
	for want := range sent {
		if len(want) <= limit {
			require.Equal(t, want, receive(t, e.got))
			continue
		}
		o := receive(t, e.large)
		require.EqualValues(t, len(want), o.Size)
		require.EqualValues(t, limit, o.Limit)
		require.Equal(t, want[:endBytes], string(o.Head))
		require.Equal(t, want[max(endBytes, len(want)-endBytes):], string(o.Tail))
		require.ErrorIs(t, o, fault.New(fault.MessageTooBig))
	}
	require.ErrorIs(t, e.readerDone(t), fault.New(fault.MessageTooBig))
	e.over(t)
	require.Equal(t, 1009, e.CloseCode())
	require.Zero(t, r.hub.Stats().Large)
}

// TestLargeMessagesInTurn: while the hub has no room for one more large message, its
// socket is neither slow nor silent, and others are read.
func TestLargeMessagesInTurn(t *testing.T) {
	const brief = 2 * time.Second // long enough for the others, whose pongs may be late on a busy machine
	r := newRig(t, Options{
		ReadLimit: 1024, LargeMessages: 1, MessageTimeout: brief, PingInterval: brief, PongTimeout: brief, CloseTimeout: brief,
	}, false)
	r.roomy(Limits{Message: 40_000, Drain: 80_000})
	r.hub.large <- struct{}{}
	p, e := r.pair()
	go p.pong()
	p.text(letters(30_000))
	seen := e.ticks.Load() // four are as long as brief
	require.Eventually(t, func() bool { return e.ticks.Load() > seen+12 }, maxWait, time.Millisecond)
	require.Empty(t, e.got)
	require.Empty(t, e.reasons)
	require.Zero(t, e.Silence())

	other, o := r.pair()
	go other.pong()
	other.text("small")
	require.Equal(t, "small", receive(t, o.got))

	gone, g := r.pair()
	gone.text(letters(2000))
	g.Finish(1012, "restart")
	g.over(t)
	require.ErrorIs(t, g.readerDone(t), ErrClosed)

	r.hub.vacate()
	require.Equal(t, letters(30_000), receive(t, e.got))
	p.text(letters(50_000))
	require.EqualValues(t, 50_000, receive(t, e.large).Size)
	require.Zero(t, r.hub.Stats().Large)
}

// pong answers pings.
func (p *peer) pong() {
	for {
		op, b, err := p.next()
		if err != nil {
			return
		}
		if op == opPing {
			_, _ = p.Write(masked(opPong, b))
		}
	}
}

// TestSlowLargeMessages: each part of a large message has the time of a small one.
func TestSlowLargeMessages(t *testing.T) {
	r := newRig(t, Options{ReadLimit: 1024}, false)
	r.roomy(Limits{Message: 8192, Drain: 16_384})
	p, e := r.pair()
	p.send(masked(0x01, make([]byte, 1025)))
	for range 11 {
		began := e.began.Load()
		p.send(masked(0, make([]byte, 1024)))
		require.Eventually(t, func() bool { return e.began.Load() > began }, maxWait, time.Millisecond)
	}
	p.send(masked(0x80, nil))
	require.EqualValues(t, 12*1024+1, receive(t, e.large).Size)
}

// receive returns what comes next.
func receive[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(maxWait):
		require.FailNow(t, "nothing comes")
	}
	return v
}

// TestKeptMessagesHaveRoom: a message that is kept takes the hub's room until it is
// released, and stays as it is while others are read.
func TestKeptMessagesHaveRoom(t *testing.T) {
	r := newRig(t, Options{ReadLimit: 1024, LargeMessages: 2}, false)
	r.roomy(Limits{Message: 40_000, Drain: 80_000})
	r.keep = true
	p, e := r.pair()
	p.text(letters(20_000))
	p.text(letters(21_000))
	first, second := receive(t, e.kept), receive(t, e.kept)
	require.EqualValues(t, 2, r.hub.Stats().Large)
	p.text(letters(22_000))
	first.release()
	third := receive(t, e.kept)
	for n, k := range map[int]kept{20_000: first, 21_000: second, 22_000: third} {
		require.Equal(t, letters(n), string(k.message))
	}
	second.release()
	third.release()
	p.text("small")
	small := receive(t, e.kept)
	require.Equal(t, "small", string(small.message))
	small.release()
	require.Zero(t, r.hub.Stats().Large)
	p.send(masked(opText, bytes.Repeat([]byte{0xff}, 5000)))
	require.ErrorIs(t, e.readerDone(t), fault.New(fault.BadUTF8))
	require.Zero(t, r.hub.Stats().Large)
}

// TestEndsRaceWithLargeMessages: whatever ends a socket in the middle of large messages,
// none keeps the hub's room.
func TestEndsRaceWithLargeMessages(t *testing.T) {
	r := newRig(t, Options{ReadLimit: 512, LargeMessages: 2, CloseTimeout: 20 * time.Millisecond}, false)
	r.roomy(Limits{Message: 20_000, Drain: 60_000})
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 150 {
		p, e := r.pair()
		size, size2, way := 1000+rnd.IntN(30_000), rnd.IntN(70_000), rnd.IntN(4)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = p.Write(append(pieces(letters(size), 5000), pieces(letters(size2), 5000)...)) })
		wg.Go(func() {
			switch way {
			case 0:
				e.Finish(1012, "restart")
			case 1:
				e.Abort()
			case 2:
				_ = p.Close()
			default:
				_, _ = p.Write(masked(opClose, code(1000)))
			}
		})
		wg.Go(func() { p.pong() })
		e.over(t)
		_ = p.Close()
		wg.Wait()
		_ = e.readerDone(t)
	}
	require.Eventually(t, func() bool { return r.hub.Stats().Large == 0 }, maxWait, time.Millisecond)
}
