package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
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

// lagLine is a line of the log about a viewer that lags.
type lagLine struct {
	Level, Message, Log, Connection, Dialect, Tenant, Principal, Reason string

	Behind  uint64 `json:"events_behind"`
	Waiting int    `json:"bytes_waiting"`
	Missed  int    `json:"announcements_missed"`
}

// lagLines are the lines of a process about viewers that lag.
type lagLines chan lagLine

func (l lagLines) Write(p []byte) (int, error) {
	var one lagLine
	if json.Unmarshal(p, &one) == nil && one.Reason != "" {
		l <- one
	}
	return len(p), nil
}

// next returns the next line.
func (l lagLines) next(t *testing.T) lagLine {
	t.Helper()
	select {
	case one := <-l:
		return one
	case <-time.After(maxWait):
		require.FailNow(t, "no line about a viewer came")
		return lagLine{}
	}
}

// fill appends to a log until the line comes that says that its viewer lags, and returns how many texts that took.
func (r *rig) fill(l subject.Log, lines lagLines) (begun lagLine, texts int) {
	r.t.Helper()
	eventually(r.t, "the line about the viewer", func() bool {
		if r.metric("waggle_gateway_lagging_viewers", "reason", "queue_full") == 0 { // or it has read again
			r.answers(l, bulk)
			texts++
		}
		select {
		case begun = <-lines:
			return true
		default:
			return false
		}
	})
	return begun, texts
}

// The log of the process names a viewer that does not read: once when it begins to lag, and once when it has caught up.
func TestTheLogNamesAViewerThatLags(t *testing.T) {
	const bound = 16 << 10
	for name, open := range map[string]func(*rig, subject.Log) (read func(texts int)){
		"orbit": func(r *rig, l subject.Log) func(int) {
			c := r.dial("session=" + l.Entity.String() + "&after=0")
			c.ready()
			return func(texts int) {
				for range texts {
					c.must("agent_response")
				}
			}
		},
		"events": func(r *rig, l subject.Log) func(int) {
			s := r.reads(streamOf(l))
			return func(texts int) {
				for range texts + 1 {
					s.must()
				}
			}
		},
		"announcements": func(r *rig, _ subject.Log) func(int) {
			s := r.reads("/api/v1/live")
			return func(int) {
				for s.must().event != "gap" {
				}
				go func() { // others are on their way, and may be lost, too
					for {
						if _, err := s.next(); err != nil {
							return
						}
					}
				}()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			lines := make(lagLines, 100)
			r := start(t, func(c *gateway.Config, d *gateway.Deps) {
				c.QueueBytes, d.Logger = bound, zerolog.New(lines)
			})
			l := r.session("default")
			read := open(r, l)
			begun, sent := r.fill(l, lines)
			require.Equal(t, "info viewer lags queue_full", begun.Level+" "+begun.Message+" "+begun.Reason)
			require.Equal(t, "default anonymous", begun.Tenant+" "+begun.Principal)
			require.NotEmpty(t, begun.Connection)
			if name == "announcements" {
				require.Positive(t, begun.Missed)
				require.Equal(t, "events", begun.Dialect)
			} else {
				require.Positive(t, r.metric("waggle_gateway_lag_entries_total", "reason", "queue_full"))
				require.Positive(t, begun.Behind)
				require.Equal(t, l.String(), begun.Log)
				require.Equal(t, name, begun.Dialect)
			}
			read(sent)
			over := lines.next(t)
			require.Equal(t, "info viewer caught up queue_full", over.Level+" "+over.Message+" "+over.Reason)
			require.Equal(t, begun.Connection, over.Connection)
			require.Zero(t, over.Behind+uint64(over.Waiting+over.Missed))
			require.Zero(t, r.metric("waggle_gateway_lagging_viewers"))
			require.Empty(t, lines)
		})
	}
}

// A viewer that lags until its connection ends has a line for that, too.
func TestTheLogNamesAViewerThatLeavesBehind(t *testing.T) {
	lines := make(lagLines, 100)
	r := start(t, func(c *gateway.Config, d *gateway.Deps) { c.QueueBytes, d.Logger = 16<<10, zerolog.New(lines) })
	l := r.session("default")
	c := r.dial("session=" + l.Entity.String() + "&after=0")
	c.ready()
	begun, _ := r.fill(l, lines)
	require.NoError(t, c.Conn.Close())
	over := lines.next(t)
	require.Equal(t, "lagging viewer closed "+begun.Connection, over.Message+" "+over.Connection)
	require.Positive(t, over.Behind)
	require.Positive(t, over.Waiting)
}
