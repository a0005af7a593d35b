package gateway_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var bulk = strings.Repeat("x", 20<<10)

// fill appends more to a log than the kernel takes for its viewer, which does not read and is
// not given up: a socket has a small buffer for what it sends.
func (r *rig) fill(l subject.Log) {
	r.t.Helper()
	for range 80 {
		r.answers(l, bulk)
	}
}

// One of a hundred viewers stops reading. The gateway keeps no more for it than the
// queue's bound, the others see everything as it comes, and when it reads again it
// gets everything, too, in order.
func TestViewerThatStopsReading(t *testing.T) {
	const viewers, bound, events = 100, 64 << 10, 100
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.QueueBytes = bound })
	check := r.bystander()
	settled := r.settled()
	l := r.session("default")
	query := "session=" + l.Entity.String() + "&after=0"
	sleeper := r.dial(query)
	sleeper.ready()
	awake := make([]*client, viewers-1)
	for i := range awake {
		awake[i] = r.dial(query)
		awake[i].ready()
	}
	text := func(i int) string { return fmt.Sprintf("%d %s", i, strings.Repeat("x", 8<<10)) }
	var wg sync.WaitGroup
	for _, c := range awake {
		wg.Go(func() {
			for i := range events {
				_, payload, err := c.read()
				if err != nil || !bytes.Contains(payload, fmt.Appendf(nil, `"message":"%d x`, i)) {
					t.Errorf("an undisturbed viewer got %.120q instead of event %d: %v", payload, i, err)
					return
				}
			}
		})
	}
	most := 0.0
	for i := range events {
		r.answers(l, text(i))
		most = max(most, r.metric("waggle_gateway_queue_bytes"))
	}
	wg.Wait()
	check()
	eventually(t, "the sleeper has left live mode", func() bool { return r.metric("waggle_gateway_lag_entries_total") >= 1 })
	// All the others have taken everything: what waits, waits for the sleeper.
	waiting := 0.0
	eventually(t, "something waits for the one who does not read, and no more than its queue holds", func() bool {
		waiting = r.metric("waggle_gateway_queue_bytes")
		return waiting > 0 && waiting <= bound
	})
	for i := range events {
		s := sleeper.must("agent_response")
		require.Equal(t, text(i), s.Data.Message, "event %d", i)
		require.EqualValues(t, i+2, s.Seq)
	}
	r.answers(l, "live again")
	for _, c := range append(awake, sleeper) {
		require.Equal(t, "live again", c.must("agent_response").Data.Message)
		c.leave()
	}
	settled()
	t.Logf("%d KB were written for each viewer; at most %d KB waited for all of them, %d KB for the sleeper in the end",
		events*8, int(most)>>10, int(waiting)>>10)
}

// While a viewer is behind, deltas of one message are merged for it: it gets the
// same text in fewer frames.
func TestDeltasAreMergedForThoseBehind(t *testing.T) {
	t.Parallel()
	const deltas = 1000
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.QueueBytes = 16 << 10 })
	l := r.session("default")
	c := r.dial("session=" + l.Entity.String() + "&after=0&deltas=true")
	c.ready()
	r.fill(l)
	var want strings.Builder
	for i := range deltas {
		piece := fmt.Sprintf("%d ", i)
		want.WriteString(piece)
		require.NoError(t, r.append(l, unique(), event.MessageDeltaData{MessageID: "m", RunID: "r", ExecutionID: "exec_x", Attempt: 1, Text: piece}))
	}
	r.answers(l, "end")
	var got strings.Builder
	frames := 0
	for seq := uint64(0); ; {
		s, err := c.next()
		require.NoError(t, err)
		require.Greater(t, s.Seq, seq, "frames in order")
		seq = s.Seq
		if s.Data.Message == "end" {
			break
		}
		if s.Type == "agent_delta" {
			frames++
			got.WriteString(s.Data.Text)
		}
	}
	require.Equal(t, want.String(), got.String())
	require.Less(t, frames, deltas/10, "frames for %d deltas", deltas)
	t.Logf("%d deltas arrived in %d frames", deltas, frames)
}

// A peer that takes nothing at all is given up, and is told to come back.
func TestViewerThatIsStuck(t *testing.T) {
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.QueueBytes, c.WriteStall = 16<<10, 200*time.Millisecond
	})
	check := r.bystander()
	settled := r.settled()
	l := r.session("default")
	c := r.dial("session=" + l.Entity.String())
	c.ready()
	givenUp := func() float64 { return r.metric("waggle_gateway_closes_total", "code", "4001") }
	for end := time.Now().Add(patience); givenUp() == 0 && time.Now().Before(end); {
		r.answers(l, bulk)
	}
	require.EqualValues(t, 1, givenUp())
	check()
	_ = c.Conn.Close()
	settled()
}

// A client that is silent is cut off; one that answers pings, or sends anything at all, is not.
func TestSilentClients(t *testing.T) {
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.PingInterval, c.PongTimeout = 50*time.Millisecond, 4*time.Second // a pong may be late on a busy machine
	})
	settled := r.settled()
	query := "session=" + r.session("default").Entity.String()
	silent, polite := r.dial(query), r.dial(query)
	silent.ready()
	polite.ready()
	ends := make(chan error, 1)
	go func() { // it reads, and answers nothing
		for {
			if _, _, err := silent.read(); err != nil {
				ends <- err
				return
			}
		}
	}()
	var end error
	for end == nil {
		op, payload, err := polite.read()
		require.NoError(t, err)
		if op == opPing {
			polite.write(frame(fin|opPong, payload))
		}
		select {
		case end = <-ends:
		default:
		}
	}
	var closed closedError
	require.ErrorAs(t, end, &closed)
	require.Equal(t, 4000, closed.code)
	_ = silent.Conn.Close()
	polite.leave()
	settled()
}
