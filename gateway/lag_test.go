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
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var bulk = strings.Repeat("x", 20<<10)

// One of a hundred viewers stops reading. The gateway keeps no more for it than the
// queue's bound, the others see everything as it comes, and when it reads again it
// gets everything, too, in order.
func TestAViewerThatStopsReading(t *testing.T) {
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

// A client that is silent, stuck or slow is cut off, with a code of its own.
func TestClientsThatAreCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		limit func(*gateway.Config)
		code  int
		drive func(*rig, subject.Log, *client)
	}{
		"silent": {func(c *gateway.Config) { c.PingInterval, c.PongTimeout = 50*time.Millisecond, 200*time.Millisecond }, 4000, nil},
		"slow": {func(c *gateway.Config) { c.MessageTimeout = 200 * time.Millisecond }, 1008, func(_ *rig, _ subject.Log, c *client) {
			c.write(frame(opText, []byte("{")))
		}},
		"stuck": {func(c *gateway.Config) { c.QueueBytes, c.WriteStall = 16<<10, 200*time.Millisecond }, 4001, func(r *rig, l subject.Log, _ *client) {
			for r.metric("waggle_gateway_closes_total", "code", "4001") == 0 {
				r.answers(l, bulk)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(g *gateway.Config, _ *gateway.Deps) { c.limit(g) })
			l := r.session("default")
			client := r.dial("session=" + l.Entity.String())
			client.ready()
			if c.drive != nil {
				c.drive(r, l, client)
			}
			if name != "stuck" { // it takes nothing, not even the close frame
				client.closes(c.code)
			}
		})
	}
}
