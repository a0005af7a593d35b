package ws

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// listener is a handler that hears of pongs.
type listener struct {
	*record
	heard chan string
}

func (l listener) Pong(p []byte) { l.heard <- string(p) }

// A ping of ours keeps its place among the frames, and its pong comes back to us; a
// pong without a ping does, too.
func TestPingsBetweenFrames(t *testing.T) {
	r := newRig(t, Options{}, false)
	p, e := r.pair()
	l := listener{newRecord(), make(chan string, 100)}
	e.Bind(l)
	for i := range 10 {
		require.Equal(t, 1, e.Send(numbered(i, 10)))
		require.True(t, e.Ping(fmt.Appendf(nil, "after %d", i)))
	}
	for i := range 10 {
		op, payload, err := p.next()
		require.NoError(t, err)
		require.EqualValues(t, opText, op|0x80)
		require.Equal(t, fmt.Sprintf("%08d", i), string(payload[:8]))
		op, payload, err = p.next()
		require.NoError(t, err)
		require.EqualValues(t, opPing, op|0x80)
		p.send(masked(opPong, payload))
		require.Equal(t, fmt.Sprintf("after %d", i), <-l.heard)
	}
	p.send(masked(opPong, []byte("unasked")))
	require.Equal(t, "unasked", <-l.heard)
	require.Less(t, e.Silence(), time.Minute)
	require.True(t, e.Ping(make([]byte, 200)))
	_, payload, err := p.next()
	require.NoError(t, err)
	require.Len(t, payload, short)
}

// The silence of a peer is counted, and ends with whatever it says.
func TestSilence(t *testing.T) {
	r := newRig(t, Options{PingInterval: time.Hour}, false)
	p, e := r.pair()
	require.Eventually(t, func() bool { return e.Silence() > 50*time.Millisecond }, maxWait, time.Millisecond)
	began := time.Now()
	p.text("hello")
	require.Equal(t, "hello", receive(t, e.got))
	require.LessOrEqual(t, e.Silence(), time.Since(began))
}
