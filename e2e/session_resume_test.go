//go:build nightly

package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// reconnects is how often lines are broken; those that the kills break come on top.
var reconnects = flag.Int64("reconnects", 1000, "how many lines TestEveryReconnectIsExact breaks")

const (
	chaosClients = 25
	// chaosKillEvery is the mean time between two kills: a killed worker's work is
	// taken up after 10 s of silence, and most runs shall have time to end in between.
	chaosKillEvery = 4 * time.Second
)

// chaos is an installation whose processes are killed at random, and clients whose
// lines are broken at random.
type chaos struct {
	*fleet
	addrs []string // of the two gateways

	mu     sync.Mutex
	random *rand.Rand
	kills  map[string]int

	breaks atomic.Int64
}

func (c *chaos) pick(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// url is that of a gateway at random.
func (c *chaos) url() string { return "ws://" + c.addrs[c.pick(len(c.addrs))] + "/ws/session" }

// TestEveryReconnectIsExact: a thousand broken lines over two gateways, while
// gateways, pipelines and workers are killed. Each client sees each event of its
// session once and in order, and each message ends once.
func TestEveryReconnectIsExact(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := &chaos{random: rand.New(rand.NewPCG(seed, 0)), kills: map[string]int{}}
	c.fleet = newFleet(t, scripted.Stages{
		Plan:      scripted.Always(scripted.Plan(tasks("a", "b")...)),
		Solve:     scripted.Always(scripted.Stream(scripted.Every(20*time.Millisecond, words(30)...))),
		Aggregate: scripted.Always(scripted.Stream(scripted.Every(20*time.Millisecond, words(30)...))),
	}.Script())
	c.configure("pipeline: {retry_backoff: 50ms}\n")
	c.addrs = []string{freeport.Addr(t), freeport.Addr(t)}
	began := time.Now()
	devices, sent := c.run(t)
	c.judge(t, devices, sent, time.Since(began))
}

// run lets the clients talk until their lines have been broken often enough, and
// returns them and the ids of what they sent, when all has been answered.
func (c *chaos) run(t *testing.T) ([]*client.MyAgent, [][]string) {
	t.Helper()
	c.serve("session,tools")
	stop, stopped := make(chan struct{}), make(chan struct{})
	victims := c.victims()
	for _, addr := range c.addrs {
		process.Eventually(t, "the gateway is there", func() bool { return process.Up(addr) })
	}
	devices, sent := make([]*client.MyAgent, chaosClients), make([][]string, chaosClients)
	var talking errgroup.Group
	for i := range devices {
		devices[i] = client.OpenMyAgent(t, sdk.Options{
			URL: "ws://" + c.addrs[i%2] + "/ws/session", Next: c.url, ClientID: fmt.Sprintf("client_%d", i),
		})
	}
	for i := range devices {
		devices[i].Until("the session", func(f sdk.Frame) bool { return f.Event == myagent.AgentSessionCreated })
		talking.Go(func() (err error) {
			sent[i], err = c.talk(devices[i])
			return err
		})
	}
	go func() { defer close(stopped); c.killer(stop, victims) }()
	err := talking.Wait()
	close(stop)
	<-stopped
	require.NoError(t, err)
	return devices, sent
}

// talk asks one question after the other, with a line that breaks every now and then.
func (c *chaos) talk(d *client.MyAgent) ([]string, error) {
	ctx, cancel := process.Within(time.Duration(max(4, *reconnects/250)) * process.MaxWait)
	defer cancel()
	broken := make(chan struct{})
	go func() { defer close(broken); c.breaker(ctx, d) }()
	defer func() { cancel(); <-broken }()
	var sent []string
	for c.breaks.Load() < *reconnects {
		id := d.Message("go", nil)
		sent = append(sent, id)
		if _, err := d.Await(ctx, client.EndOf(id)); err != nil {
			return sent, fmt.Errorf("session %s: message %s (%d): %w; it has seen %v", d.Session(), id, len(sent), err, tailOf(d, 12))
		}
	}
	return sent, nil
}

func tailOf(d *client.MyAgent, n int) []string {
	names := client.Names(d.Frames())
	return names[max(0, len(names)-n):]
}

// breaker cuts the client's line at random moments, once it is attached again.
func (c *chaos) breaker(ctx context.Context, d *client.MyAgent) {
	for c.breaks.Load() < *reconnects {
		wait := time.NewTimer(time.Duration(100+c.pick(900)) * time.Millisecond)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return
		}
		if d.Break() {
			c.breaks.Add(1)
		}
	}
}

// victims starts two processes of each kind, which will be killed one at a time: the other
// one takes over.
func (c *chaos) victims() []func() func() {
	kinds := []func() func(){}
	add := func(kind string, start func() *process.Process) {
		p := start()
		kinds = append(kinds, func() func() {
			c.kills[kind]++
			p.Kill()
			return func() { p = start() }
		})
	}
	for i := range 2 {
		add("gateway", func() *process.Process { return c.serve("gateway", "--addr", c.addrs[i]) })
		add("pipeline", func() *process.Process { return c.serve("pipeline") })
		add("worker", func() *process.Process { return c.serve("worker") })
	}
	return kinds
}

// killer kills processes one after the other, and starts each again at once.
func (c *chaos) killer(stop <-chan struct{}, victims []func() func()) {
	for {
		pause := time.NewTimer(chaosKillEvery/2 + time.Duration(c.pick(int(chaosKillEvery))))
		select {
		case <-pause.C:
			victims[c.pick(len(victims))]()()
		case <-stop:
			pause.Stop()
			return
		}
	}
}

// judge compares what each client has seen with the log and with a latecomer.
func (c *chaos) judge(t *testing.T, devices []*client.MyAgent, sent [][]string, took time.Duration) {
	t.Helper()
	addr := c.addrs[0]
	process.Eventually(t, "the gateway is there", func() bool { return process.Up(addr) })
	events, messages, losses := 0, 0, 0
	outcomes := map[event.Type]int{}
	for i, d := range devices {
		log := history(t, place{t: t, addr: addr}, d.Session())
		d.UntilSeq(uint64(len(log)))
		late := client.OpenMyAgent(t, sdk.Options{URL: "ws://" + addr + "/ws/session", Session: d.Session()})
		late.UntilSeq(uint64(len(log)))
		seen := d.Frames()
		require.EqualValues(t, len(log), seen[len(seen)-1].Seq, "events of session %d", i)
		sameFrames(t, seen, late.Frames())
		lost, gaps := d.Losses()
		require.Empty(t, gaps)
		losses += lost
		accepted := map[string]int{}
		for _, m := range all[event.MessageReceivedData](t, log) {
			accepted[m.MessageID]++
		}
		require.Len(t, accepted, len(sent[i]))
		for _, id := range sent[i] {
			require.Equal(t, 1, accepted[id], "message %s", id)
		}
		for run, n := range terminals(t, log) {
			require.Equal(t, 1, n, "terminal events of %s", run)
		}
		for _, e := range log {
			if e.Type.Terminal() {
				outcomes[e.Type]++
			}
		}
		events, messages = events+len(log), messages+len(sent[i])
	}
	t.Logf("%d reconnects (%d forced) of %d clients over 2 gateways in %.0f s, kill -9 of %v: %d events seen by each client of its session, "+
		"0 lost, 0 doubled, 0 reordered; %d messages accepted, each ended once: %v",
		losses, c.breaks.Load(), chaosClients, took.Seconds(), c.kills, events, messages, outcomes)
}

// sameFrames fails unless two clients have seen the same: each event once and in order, in the same bytes where both have
// a frame of its own for it. A client that was slow has one frame for several pieces of a text.
func sameFrames(t *testing.T, seen, again []sdk.Frame) {
	t.Helper()
	require.Equal(t, joined(t, again), joined(t, seen))
	own := map[uint64]string{}
	for _, f := range again {
		if f.From() == f.Seq {
			own[f.Seq] = string(f.Raw)
		}
	}
	for _, f := range seen {
		if other := own[f.Seq]; other != "" && f.From() == f.Seq {
			require.Equal(t, other, string(f.Raw))
		}
	}
}

// joined returns frames with the pieces of a text that follow each other as one. It fails unless each event was seen once
// and in order.
func joined(t *testing.T, frames []sdk.Frame) (out []string) {
	t.Helper()
	last, open := uint64(0), ""
	for _, f := range frames {
		require.Equal(t, last+1, f.From(), "%s", f.Raw)
		last = f.Seq
		m := sdk.As[myagent.PartialAnswerMeta](f.Metadata)
		piece := m.MessageID != "" && !m.Final && m.StopReason == "" && (f.Event == myagent.AgentPartialAnswer || f.Event == myagent.AgentThinking)
		text := fmt.Sprintf("%s of %s, attempt %d: ", f.Event, m.MessageID, m.Attempt)
		switch {
		case !piece:
			out, open = append(out, string(f.Raw)), ""
		case open == text:
			out[len(out)-1] += f.Text()
		default:
			out, open = append(out, text+f.Text()), text
		}
	}
	return out
}
