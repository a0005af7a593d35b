package ws

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// numbered is a message that starts with its number.
func numbered(i, size int) *transport.Message {
	b := bytes.Repeat([]byte{'x'}, max(size, 8))
	copy(b, fmt.Sprintf("%08d", i))
	return transport.Text(b)
}

// flood sends n frames of random sizes, as fast as the socket takes them.
func flood(e *side, n int, seed uint64) error {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var wait []*transport.Message
	for i := 0; i < n || len(wait) > 0; {
		for ; i < n && len(wait) < 1+rnd.IntN(40); i++ {
			size := rnd.IntN(1500)
			if rnd.IntN(200) == 0 {
				size = 60_000 + rnd.IntN(20_000)
			}
			wait = append(wait, numbered(i, size))
		}
		a := e.Send(wait...)
		if wait = wait[a:]; len(wait) == 0 {
			continue
		}
		select {
		case <-e.low:
		case <-e.Done():
			return fmt.Errorf("over after %d", i)
		}
	}
	return nil
}

// TestFramesArriveWholeAndInOrder: a peer that reads in random pieces, pinging all
// the while, gets every frame in order and every pong between frames.
func TestFramesArriveWholeAndInOrder(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", secure), func(t *testing.T) {
			const n = 6000
			r := newRig(t, Options{QueueBytes: 128 << 10}, secure)
			p, e := r.pair()
			require.Equal(t, "waggle", e.Subprotocol())
			p.in.Reset(&chopper{Reader: p.Conn, rnd: rand.New(rand.NewPCG(7, 7))})
			sent := make(chan error, 1)
			go func() { sent <- flood(e, n, 3) }()
			pongs, pings := 0, 0
			for i := 0; i < n || pongs < pings; {
				op, b, err := p.next()
				require.NoError(t, err)
				switch op {
				case opText:
					require.Equal(t, fmt.Sprintf("%08d", i), string(b[:8]))
					if i++; i%500 == 0 {
						p.send(masked(opPing, fmt.Appendf(nil, "p%d", pings)))
						pings++
					}
				case opPong:
					require.Equal(t, fmt.Sprintf("p%d", pongs), string(b))
					pongs++
				default:
					require.Failf(t, "frame", "%#x", op)
				}
			}
			require.NoError(t, <-sent)
			require.Zero(t, e.Queued())
			p.send(masked(opClose, code(1000)))
			got, _ := p.closed(false)
			require.Equal(t, 1000, got)
			require.ErrorIs(t, e.readerDone(t), io.EOF)
			e.over(t)
			require.Equal(t, 1000, e.CloseCode())
			require.Zero(t, r.hub.Stats().Sockets)
		})
	}
}

// chopper reads in random small pieces.
type chopper struct {
	io.Reader
	rnd *rand.Rand
}

func (c *chopper) Read(p []byte) (int, error) {
	return c.Reader.Read(p[:min(len(p), 1+c.rnd.IntN(4000))])
}

// TestMessagesArriveWhole: what a client sends in random segments and fragments
// comes out as it went in, beginning with bytes sent along with the handshake.
func TestMessagesArriveWhole(t *testing.T) {
	r := newRig(t, Options{}, false)
	rnd := rand.New(rand.NewPCG(5, 5))
	var stream []byte
	var want []string
	for i := range 200 {
		m := fmt.Sprintf("%d %s", i, strings.Repeat("é", rnd.IntN(3000)))
		want = append(want, m)
		b0, rest := byte(0x01), []byte(m)
		for len(rest) > 0 && rnd.IntN(2) == 0 {
			k := 1 + rnd.IntN(len(rest))
			stream = append(stream, masked(b0, rest[:k])...)
			stream = append(stream, masked(opPing, nil)...)
			b0, rest = 0, rest[k:]
		}
		stream = append(stream, masked(0x80|b0, rest)...)
	}
	p := r.dialWith(stream[:6000])
	go func() { _, _ = io.Copy(io.Discard, p.in) }()
	for stream = stream[6000:]; len(stream) > 0; {
		k := min(len(stream), 1+rnd.IntN(9000))
		p.send(stream[:k])
		stream = stream[k:]
	}
	e := r.wait()
	for _, w := range want {
		require.Equal(t, w, <-e.got)
	}
}

// TestRefusals: what a client must not send is answered with the right close code,
// though it continues sending.
func TestRefusals(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 3000)
	for name, c := range map[string]struct {
		bytes []byte
		code  int
		fault fault.Code
	}{
		"binary":                {masked(0x82, []byte("abc")), 1003, fault.NotText},
		"bad utf8":              {masked(opText, []byte("a\xff")), 1007, fault.BadUTF8},
		"surrogate":             {masked(opText, []byte("\xed\xa0\x80")), 1007, fault.BadUTF8},
		"too big":               {masked(opText, big), 1009, fault.MessageTooBig},
		"too big in fragments":  {append(masked(0x01, big[:800]), masked(0x00, big[:800])...), 1009, fault.MessageTooBig},
		"big binary":            {masked(0x82, bytes.Repeat(big, 100)), 1003, fault.NotText},
		"not masked":            {text(transport.Text([]byte("abc"))), 1002, ""},
		"reserved bit":          {masked(0xC1, []byte("abc")), 1002, ""},
		"unknown opcode":        {masked(0x83, []byte("abc")), 1002, ""},
		"fragmented ping":       {masked(0x09, nil), 1002, ""},
		"large ping":            {masked(opPing, big[:126]), 1002, ""},
		"continuation of none":  {masked(0x80, []byte("abc")), 1002, ""},
		"text within a message": {append(masked(0x01, []byte("a")), masked(0x81, []byte("b"))...), 1002, ""},
		"close of one byte":     {masked(opClose, []byte{3}), 1002, ""},
		"close with a bad code": {masked(opClose, code(1005)), 1002, ""},
		"close with bad utf8":   {masked(opClose, append(code(1000), 0xff)), 1007, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{ReadLimit: 1024}, false)
			p, e := r.pair()
			p.text("first")
			require.Equal(t, "first", <-e.got)
			p.send(c.bytes)
			got, _ := p.closed(true)
			require.Equal(t, c.code, got)
			p.gone()
			err := e.readerDone(t)
			if c.fault != "" {
				require.ErrorIs(t, err, fault.New(c.fault))
			} else {
				require.Error(t, err)
			}
			require.NoError(t, p.Close())
			e.over(t)
			require.Equal(t, c.code, e.CloseCode())
			_, err = e.Read()
			require.ErrorIs(t, err, ErrClosed)
		})
	}
}

// TestTruncatedMessagesAreNotMessages: a connection that ends within a message does
// not make its first half one.
func TestTruncatedMessagesAreNotMessages(t *testing.T) {
	r := newRig(t, Options{}, false)
	whole := append(masked(0x01, bytes.Repeat([]byte("a"), 1000)), masked(0x80, []byte("end"))...)
	for cut := 1; cut < len(whole); cut += 37 {
		p, e := r.pair()
		p.send(whole[:cut])
		require.NoError(t, p.Close())
		require.Error(t, e.readerDone(t))
		e.over(t)
		require.Equal(t, 1006, e.CloseCode())
	}
}

func TestFinishComesAfterWhatIsQueued(t *testing.T) {
	r := newRig(t, Options{}, false)
	p, e := r.pair()
	for i := range 1500 {
		require.Equal(t, 1, e.Send(numbered(i, 300)))
	}
	e.Finish(1012, strings.Repeat("é", 100))
	e.Finish(1000, "too late")
	require.Zero(t, e.Send(numbered(1, 1)))
	require.False(t, e.Force(numbered(1, 1)))
	for i := range 1500 {
		op, b, err := p.next()
		require.NoError(t, err)
		require.EqualValues(t, opText, op)
		require.Equal(t, fmt.Sprintf("%08d", i), string(b[:8]))
	}
	p.text("discarded")
	got, reason := p.closed(true)
	require.Equal(t, 1012, got)
	require.Equal(t, strings.Repeat("é", 61), reason, "cut at a whole character")
	p.gone()
	require.ErrorIs(t, e.readerDone(t), ErrClosed)
	e.over(t)
	require.Equal(t, 1012, e.CloseCode())
}

func TestPeerThatDoesNotAnswerTheCloseIsCut(t *testing.T) {
	r := newRig(t, Options{CloseTimeout: time.Second}, false)
	p, e := r.pair()
	e.Finish(1001, "bye")
	got, _ := p.closed(false)
	require.Equal(t, 1001, got)
	e.over(t)
	require.ErrorIs(t, e.readerDone(t), ErrClosed)
}

// TestSlowMessages: the clock of a message runs from its first byte on, whatever comes of it meanwhile.
func TestSlowMessages(t *testing.T) {
	begun := masked(0x01, []byte("{"))
	for name, c := range map[string]struct{ begin, then []byte }{
		"within a header":         {[]byte{0x81}, nil},
		"within a long header":    {[]byte{0x81, 0x80 | 127, 0, 0, 0}, nil},
		"within a payload":        {masked(opText, []byte("abcdef"))[:8], nil},
		"byte by byte":            {nil, masked(opText, bytes.Repeat([]byte(" "), 600))},
		"between fragments":       {begun, nil},
		"many fragments":          {begun, bytes.Repeat(masked(0x00, []byte(" ")), 100)},
		"pings between fragments": {begun, bytes.Repeat(masked(opPing, nil), 100)},
		"within a ping":           {[]byte{opPing, 0x80 | 5}, nil},
		"within a close":          {[]byte{opClose}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{MessageTimeout: 300 * time.Millisecond}, false) // a pause of a busy machine is shorter
			p, e := r.pair()
			p.send(c.begin)
			r.wg.Go(func() { p.drip(c.then) })
			require.Equal(t, fault.MessageSlow, e.fault(t).Code)
			got, _ := p.closed(true)
			require.Equal(t, 1008, got)
			require.NoError(t, p.Close())
			e.over(t)
			require.Equal(t, 1008, e.CloseCode())
		})
	}
}

// drip sends byte by byte until the connection ends.
func (p *peer) drip(bytes []byte) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := range bytes {
		if _, err := p.Write(bytes[i : i+1]); err != nil {
			return
		}
		<-tick.C
	}
}

// TestControlFramesAreNotMessages: neither a ping nor an idle peer has the clock of
// a message running.
func TestControlFramesAreNotMessages(t *testing.T) {
	r := newRig(t, Options{MessageTimeout: 40 * time.Millisecond}, false)
	p, e := r.pair()
	p.send(masked(opPing, []byte("x")))
	op, b, err := p.next()
	require.NoError(t, err)
	require.EqualValues(t, opPong, op)
	require.Equal(t, "x", string(b))
	seen := e.ticks.Load()
	require.Eventually(t, func() bool { return e.ticks.Load() > seen+20 }, maxWait, time.Millisecond)
	p.text("still here")
	require.Equal(t, "still here", <-e.got)
	require.Empty(t, e.reasons)
}

func TestSilentPeer(t *testing.T) {
	r := newRig(t, Options{PingInterval: 20 * time.Millisecond, PongTimeout: 60 * time.Millisecond}, false)
	p, e := r.pair()
	op, _, err := p.next()
	require.NoError(t, err)
	require.EqualValues(t, opPing, op)
	require.Equal(t, fault.PeerSilent, e.fault(t).Code)
	got, _ := p.closed(true)
	require.Equal(t, 4000, got)
	e.over(t)
}

func TestPeerThatAnswersPingsStays(t *testing.T) {
	r := newRig(t, Options{PingInterval: 10 * time.Millisecond, PongTimeout: maxWait}, false)
	p, e := r.pair()
	for range 10 {
		op, _, err := p.next()
		require.NoError(t, err)
		require.EqualValues(t, opPing, op)
		p.send(masked(opPong, nil))
	}
	p.text("here")
	require.Equal(t, "here", <-e.got)
	require.EqualValues(t, 10, e.controls.Load())
}

func TestPingFlood(t *testing.T) {
	r := newRig(t, Options{}, false)
	r.set = func(h *record) { h.allowed = 40 }
	p, e := r.pair()
	p.send(bytes.Repeat(masked(opPing, []byte("flood")), 5000))
	got, _ := p.closed(true)
	require.Equal(t, 1008, got)
	e.over(t)
	require.EqualValues(t, 41, e.controls.Load())
}

// TestStuckPeerCostsOthersNothing: one of a hundred peers reads nothing. It is cut,
// and the others have received everything.
func TestStuckPeerCostsOthersNothing(t *testing.T) {
	const peers, n = 100, 200
	r := newRig(t, Options{WriteStall: 300 * time.Millisecond}, false)
	var stuck *side
	var ends []*side
	var wg sync.WaitGroup
	for i := range peers {
		p, e := r.pair()
		if i == 0 {
			stuck = e
			continue
		}
		ends = append(ends, e)
		wg.Go(func() {
			for k := range n {
				_, b, err := p.next()
				if err != nil || string(b[:8]) != fmt.Sprintf("%08d", k) {
					t.Errorf("frame %d: %q, %v", k, b[:min(8, len(b))], err)
					return
				}
			}
		})
	}
	go func() {
		f := numbered(0, 256<<10)
		for { // fills whatever the kernel holds
			if stuck.Send(f) == 0 {
				select {
				case <-stuck.low:
				case <-stuck.Done():
					return
				}
			}
		}
	}()
	for k := range n {
		f := numbered(k, 300)
		for _, e := range ends {
			require.Equal(t, 1, e.Send(f))
		}
	}
	wg.Wait()
	require.Equal(t, fault.PeerStuck, stuck.fault(t).Code)
	stuck.over(t)
	require.Equal(t, 4001, stuck.CloseCode())
	require.Zero(t, stuck.Queued())
	require.EqualValues(t, peers-1, r.hub.Stats().Sockets)
	for _, e := range ends {
		require.Zero(t, e.CloseCode())
	}
}

// TestEndsRace: whatever ends a socket, and however many things at once do, it ends
// once and leaves nothing behind.
func TestEndsRace(t *testing.T) {
	t.Run("tcp", func(t *testing.T) { race(t, 250, false) })
	t.Run("tls", func(t *testing.T) { race(t, 80, true) })
}

func race(t *testing.T, rounds int, secure bool) {
	r := newRig(t, Options{CloseTimeout: 20 * time.Millisecond, QueueBytes: 32 << 10}, secure)
	rnd := rand.New(rand.NewPCG(11, 11))
	for i := range rounds {
		p, e := r.pair()
		ways := []func(){
			func() { e.Finish(1012, "restart") },
			func() { e.Finish(1008, "policy") },
			func() { e.Abort() },
			func() { _, _ = p.Write(masked(opClose, code(1001))) },
			func() { _, _ = p.Write(masked(0xff, nil)) },
			func() { _, _ = p.Write(masked(0x82, []byte("binary"))) },
			func() { _ = p.Close() },
			func() { e.Send(numbered(0, 30_000), numbered(1, 10)) },
			func() { e.Force(numbered(0, 100)) },
			func() { _, _ = io.CopyN(io.Discard, p.Conn, 20_000) },
		}
		var wg sync.WaitGroup
		start := make(chan struct{})
		for _, w := range []int{rnd.IntN(7), rnd.IntN(10), rnd.IntN(10), 7} {
			wg.Go(func() { <-start; ways[w]() })
		}
		close(start)
		_ = p.SetReadDeadline(time.Now().Add(maxWait))
		e.over(t)
		require.NotZero(t, e.CloseCode(), "round %d", i)
		_ = p.Close()
		wg.Wait()
		require.Error(t, e.readerDone(t))
		require.Zero(t, e.Queued())
	}
	require.Zero(t, r.hub.Stats().Sockets)
}

// TestCloseOfTheHubEndsAll: also sockets that are closing, behind or idle, and those
// without a reader.
func TestCloseOfTheHubEndsAll(t *testing.T) {
	r := newRig(t, Options{}, false)
	var ends []*side
	for i := range 20 {
		p, e := r.pair()
		switch i % 4 {
		case 0:
			e.Finish(1001, "")
		case 1:
			for e.Send(numbered(i, 200<<10)) == 1 {
			}
		case 2:
			p.send(masked(0x82, nil))
		}
		ends = append(ends, e)
	}
	r.hub.Close()
	r.hub.Close()
	for _, e := range ends {
		e.over(t)
		require.Error(t, e.readerDone(t))
	}
	resp, err := r.srv.Client().Get(r.srv.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 503, resp.StatusCode)
}

func TestHandshakeThatIsNone(t *testing.T) {
	r := newRig(t, Options{}, false)
	resp, err := r.srv.Client().Get(r.srv.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 426, resp.StatusCode)
	require.Zero(t, r.hub.Stats().Sockets)
}

func TestHeaders(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 65535, 65536, 70000} {
		f := text(transport.Text(make([]byte, n)))
		require.Len(t, f, headerLen(n)+n)
		switch headerLen(n) {
		case 2:
			require.EqualValues(t, n, f[1])
		case 4:
			require.EqualValues(t, n, binary.BigEndian.Uint16(f[2:]))
		default:
			require.EqualValues(t, n, binary.BigEndian.Uint64(f[2:]))
		}
	}
	_, got := closeFrame(1006, "")
	require.Equal(t, 1011, got, "a code that must not be sent")
}
