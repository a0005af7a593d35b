package ws

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// bin takes everything at once.
type bin struct{}

func (bin) try(_ *attempt, p []byte) (int, error) { return len(p), nil }
func (bin) push([]byte, func()) error             { return nil }

// tap takes nothing until it is opened, and then lets through what is pushed.
type tap struct {
	wanted chan struct{} // a goroutine pushes
	open   chan struct{}
	got    []byte
	net.Conn
}

func (*tap) try(*attempt, []byte) (int, error) { return 0, nil }

func (o *tap) push(p []byte, moved func()) error {
	o.wanted <- struct{}{}
	if _, ok := <-o.open; !ok {
		return net.ErrClosed
	}
	o.got = append(o.got, p...)
	moved()
	return nil
}

// hand is a hub whose only shard is worked by the test.
type hand struct {
	hub *Hub
	sh  *shard
	buf *[]byte
}

func newHand(o Options) *hand {
	h := &Hub{opts: o.withDefaults(), start: time.Now(), stop: make(chan struct{})}
	sh := newShard(h)
	h.shards = []*shard{sh}
	return &hand{hub: h, sh: sh, buf: newBuffer(coalesce)}
}

func (h *hand) socket(nc net.Conn, out sink) *Socket {
	s := newSocket(h.hub)
	s.attach(nc, out)
	return s
}

// work does what the shard's goroutine would, until nothing is left.
func (h *hand) work() {
	for len(h.sh.list) > 0 {
		work := h.sh.list
		h.sh.list = nil
		h.buf = h.sh.round(work, h.buf)
	}
}

func TestQueueIsBounded(t *testing.T) {
	h := newHand(Options{QueueBytes: 10_000})
	near, far := net.Pipe()
	defer far.Close()
	o := &tap{wanted: make(chan struct{}, 100), open: make(chan struct{})}
	s, rec := h.socket(near, o), newRecord()
	s.Bind(rec)

	huge := numbered(0, 50_000)
	require.Equal(t, 1, s.Send(huge), "a frame beyond the bound, into an empty queue")
	require.Zero(t, s.Send(numbered(1, 10)), "the bound")
	require.True(t, s.Force(numbered(2, 10)))
	require.False(t, s.Force(numbered(3, 30_000)), "the bound of Force")
	require.Equal(t, len(text(huge))+12, s.Queued())
	require.Empty(t, rec.low)

	h.work() // the huge frame is on its way
	<-o.wanted
	require.Empty(t, rec.low)
	o.open <- struct{}{}
	<-o.wanted // the forced one
	<-rec.low
	require.Equal(t, 12, s.Queued())
	require.Equal(t, 2, s.Send(numbered(4, 4000), numbered(5, 4000), numbered(6, 4000)))
	o.open <- struct{}{}
	<-o.wanted
	o.open <- struct{}{}
	<-rec.low
	h.hub.wg.Wait()
	require.Zero(t, s.Queued())
	var want []byte
	for _, f := range []*transport.Message{huge, numbered(2, 10), numbered(4, 4000), numbered(5, 4000)} {
		want = append(want, text(f)...)
	}
	require.Equal(t, want, o.got)
	s.Abort()
}

// TestFinishDropsWhatWillNotLeaveInTime: the peer gets the frame that it is in the
// middle of, and the close frame, but not the rest.
func TestFinishDropsWhatWillNotLeaveInTime(t *testing.T) {
	h := newHand(Options{CloseTimeout: time.Minute})
	near, far := net.Pipe()
	defer far.Close()
	o := &tap{wanted: make(chan struct{}, 100), open: make(chan struct{})}
	s := h.socket(near, o)
	first := numbered(0, 100)
	s.Send(first)
	h.work()
	<-o.wanted
	s.Send(numbered(1, 100))
	s.reading = true // the answer needs no reader
	s.Finish(1012, "restart")
	h.hub.start = h.hub.start.Add(-2 * time.Minute) // maxWait is over
	s.sweep(time.Now())
	require.Zero(t, s.Queued()-len(text(first)))
	o.open <- struct{}{}
	<-o.wanted
	o.open <- struct{}{}
	h.hub.wg.Wait()
	frame, _ := closeFrame(1012, "restart")
	require.Equal(t, append(append([]byte(nil), text(first)...), frame...), o.got)
	require.False(t, s.over)
	h.hub.start = h.hub.start.Add(-2 * time.Minute)
	s.sweep(time.Now())
	<-s.Done()
}

func TestAClientThatAcceptsNothingIsStuck(t *testing.T) {
	h := newHand(Options{})
	near, far := net.Pipe()
	defer far.Close()
	o := &tap{wanted: make(chan struct{}, 100), open: make(chan struct{})}
	s, rec := h.socket(near, o), newRecord()
	s.Bind(rec)
	age := func(d time.Duration) {
		h.hub.start = h.hub.start.Add(-d)
		s.sweep(time.Now())
	}
	age(time.Hour) // idle: nothing waits
	s.Send(numbered(0, 10))
	h.work()
	<-o.wanted
	age(29 * time.Second)
	s.Send(numbered(1, 10))
	o.open <- struct{}{}
	<-o.wanted // it has accepted something
	age(29 * time.Second)
	require.Empty(t, rec.reasons)
	age(2 * time.Second)
	require.Equal(t, fault.PeerStuck, (<-rec.reasons).Code)
	<-s.Done()
	require.Equal(t, 4001, s.CloseCode())
	close(o.open)
	h.hub.wg.Wait()
}

// TestPongsOfAFloodAreBounded: a peer that pings and accepts nothing.
func TestPongsOfAFloodAreBounded(t *testing.T) {
	h := newHand(Options{})
	near, far := net.Pipe()
	defer far.Close()
	s := h.socket(near, bin{})
	s.inside = true
	for range 1000 {
		s.pinged(make([]byte, 125))
	}
	require.LessOrEqual(t, len(s.pongs), maxControlQueue)
	s.Abort()
}

func TestWritesPerFrame(t *testing.T) {
	h := newHand(Options{})
	near, far := net.Pipe()
	defer far.Close()
	s := h.socket(near, bin{})
	f := numbered(0, 300)
	writes := func(rounds, frames int) int64 {
		before := h.sh.writes.Load()
		for range rounds {
			for range frames {
				s.Send(f)
			}
			h.work()
		}
		return h.sh.writes.Load() - before
	}
	require.LessOrEqual(t, writes(100, 1), int64(100), "an empty queue: one write each")
	require.LessOrEqual(t, writes(100, 32), int64(320), "32 in the queue: a tenth of a write each")
	require.LessOrEqual(t, writes(1, 1000), int64(20), "a thousand missed messages")
	s.Abort()
}

func BenchmarkWrite(b *testing.B) {
	h := newHand(Options{})
	near, far := net.Pipe()
	defer far.Close()
	s := h.socket(near, bin{})
	f := numbered(0, 300)
	h.sh.list = make([]*Socket, 0, 4)
	spare := make([]*Socket, 0, 4)
	b.ReportAllocs()
	for b.Loop() {
		s.Send(f)
		work := h.sh.list
		h.sh.list = spare
		h.buf = h.sh.round(work, h.buf)
		spare = work[:0]
	}
	s.Abort()
}
