//go:build nightly

package gateway_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// A viewer more costs no allocation more per frame.
func TestGateAllocationsPerViewer(t *testing.T) {
	const events, viewers = 300, 100
	r := start(t)
	l := r.session("default")
	last := r.dial("session=" + l.Entity.String()) // joins first, so that its frames come first
	last.ready()
	measure := func(live int) float64 {
		before := r.metric("waggle_gateway_frames_out_total")
		var a, b runtime.MemStats
		runtime.ReadMemStats(&a)
		r.many(l, events)
		end := time.NewTimer(0)
		defer end.Stop()
		for waited := 0; ; waited++ { // scrapes allocate: few of them, and as many as before
			<-end.C
			end.Reset(200 * time.Millisecond)
			if waited > 1 && r.metric("waggle_gateway_frames_out_total") >= before+float64(events*live) {
				break
			}
		}
		runtime.ReadMemStats(&b)
		return float64(b.Mallocs - a.Mallocs)
	}
	require.NoError(t, last.SetDeadline(time.Time{}))
	go last.drain()
	measure(1) // warm
	one := measure(1)
	r.sinks(l, viewers)
	measure(viewers + 1)
	all := measure(viewers + 1)
	per := (all - one) / (events * viewers)
	t.Logf("%.4f allocations per frame and viewer more (%.0f for one viewer, %.0f for %d)", per, one, all, viewers+1)
	// The remaining allocations belong to events and to the scrapes. With the race detector a
	// pool drops every fourth item on purpose, which adds up to a quarter for each pool that a
	// frame passes: its batch and its write. One allocation per frame would be 1; package ws
	// proves that the write path allocates nothing.
	require.Less(t, per, 0.6, "allocations per frame and viewer")
}

// The gateway sends a replay in few writes.
func TestGateWritesOfAReplay(t *testing.T) {
	const missed = 1000
	r := start(t)
	l := r.session("default")
	r.many(l, missed)
	for _, where := range []string{"from the log", "from the ring"} {
		// Frames are counted after they are written, so that the greeting counts, too.
		writes, sent := r.metric("waggle_gateway_writes_total"), r.metric("waggle_gateway_sent_bytes_total")
		c := r.dial("session=" + l.Entity.String() + "&after=0")
		bytes := 0.0
		for n := 0; n < missed; {
			op, payload, err := c.read()
			require.NoError(t, err)
			require.EqualValues(t, opText, op)
			if strings.Contains(string(payload), "agent_response") {
				n++
			}
			bytes += float64(len(payload))
		}
		c.leave()
		took := r.metric("waggle_gateway_writes_total") - writes
		framing := (r.metric("waggle_gateway_sent_bytes_total") - sent - bytes) / missed
		t.Logf("%d messages %s in %.0f writes, the close frame included; %.2f bytes of framing each", missed, where, took, framing)
		require.LessOrEqual(t, took, 20.0, where)
		require.LessOrEqual(t, framing, 4.1, "bytes of framing per message")
	}
}

// A frame that is alone is one write; none waits for another.
func TestGateWritesOfLoneFrames(t *testing.T) {
	const viewers, events = 20, 50
	r := start(t)
	l := r.session("default")
	r.sinks(l, viewers)
	// Frames are counted after they are written: the last greetings may be counted late, and
	// a ping is a frame, too. So writes are compared with the frames that were counted.
	frames, writes := r.metric("waggle_gateway_frames_out_total"), r.metric("waggle_gateway_writes_total")
	for i := range events {
		r.many(l, 1)
		eventually(t, "each viewer has the frame", func() bool {
			return r.metric("waggle_gateway_frames_out_total") >= frames+float64(viewers*(i+1))
		})
	}
	wrote := r.metric("waggle_gateway_writes_total") - writes
	require.LessOrEqual(t, wrote, r.metric("waggle_gateway_frames_out_total")-frames, "writes per message")
}

// An idle connection is one goroutine, its reader, whatever it watches.
func TestGateGoroutinesPerConnection(t *testing.T) {
	const idle = 200
	r := start(t)
	logs := make([]subject.Log, idle)
	for i := range logs {
		logs[i] = r.session("default")
	}
	before := runtime.NumGoroutine()
	for _, l := range logs {
		r.dial("session=" + l.Entity.String()).ready()
	}
	eventually(t, "one goroutine a connection", func() bool { return runtime.NumGoroutine() <= before+idle+3 })
	t.Logf("%d goroutines for %d connections to as many sessions", runtime.NumGoroutine()-before, idle)
}
