//go:build compose

package compose_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	client "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// question is one that the model answers with a plan and tools.
const question = "Which files are in the workspace, and what does notes.md say?"

// services of docker-compose.yml that go on running.
var services = []string{
	"lb", "gateway", "session", "pipeline", "worker", "task", "team", "tools", "nats-1", "nats-2", "nats-3",
}

// talker asks one question after the other, through the load balancer.
type talker struct {
	*harness.Device
	sent    []string
	answers atomic.Int64
}

func (f *fleet) talk(n int) *talker {
	f.t.Helper()
	d := &talker{Device: harness.Follow(f.t, client.Options{
		URL: f.url("/ws/session"), Token: f.token, ClientID: fmt.Sprintf("client_%d", n), Language: "en_US",
	})}
	d.Until("the session", func(x client.Frame) bool { return x.Event == myagent.AgentSessionCreated })
	return d
}

// ask asks until the context ends; the last question is answered too.
func (d *talker) ask(ctx context.Context) error {
	for ctx.Err() == nil {
		within, cancel := harness.Within(2 * harness.Patience)
		id := d.Message(question, nil)
		d.sent = append(d.sent, id)
		_, err := d.Await(within, harness.EndOf(id))
		cancel()
		if err != nil {
			return fmt.Errorf("message %d of session %s: %w", len(d.sent), d.Session(), err)
		}
		d.answers.Add(1)
	}
	return nil
}

// TestAnyOneContainerMayBeKilled: while clients talk through the load balancer, each
// container in turn is killed, stays away for a while and comes back. What the clients
// have seen at the end is the whole of their sessions: nothing lost, doubled or out of
// order, and every question answered once.
func TestAnyOneContainerMayBeKilled(t *testing.T) {
	f := start(t, tools(t)[0])
	f.hardened(t)
	talkers := []*talker{f.talk(0), f.talk(1)}
	talking, stop := context.WithCancel(context.Background())
	defer stop()
	var all errgroup.Group
	for _, d := range talkers {
		all.Go(func() error { return d.ask(talking) })
	}
	progress := func() int64 { return min(talkers[0].answers.Load(), talkers[1].answers.Load()) }
	further := func(what string) {
		before := progress()
		harness.Eventually(t, what, func() bool { return progress() > before })
	}
	further("the first answers")
	for _, s := range services {
		id := f.containers(s)[0]
		began, before := time.Now(), progress()
		f.run("docker", "kill", id)
		if s == "gateway" || strings.HasPrefix(s, "nats-") {
			further("the talk goes on without " + s) // there are others
		}
		f.run("docker", "start", id)
		f.healthy(id)
		further("the talk goes on after " + s)
		t.Logf("killed %s: %d answers and %.1f s later all is well", s, progress()-before, time.Since(began).Seconds())
	}
	stop()
	require.NoError(t, all.Wait())
	f.judge(talkers)
	f.more(talkers)
	f.quiet(t)
}

// quiet checks that the NATS servers had nothing to refuse, and that nobody has logged
// a secret.
func (f *fleet) quiet(t *testing.T) {
	t.Helper()
	logs := f.compose("logs", "--no-color")
	require.NotContains(t, logs, "Violation")
	require.NotContains(t, logs, f.token)
	require.NotRegexp(t, `\bSU[A-Z2-7]{56}\b`, logs, "the seed of a key")
}

// hardened checks that no container of Waggle or NATS may do more than it has to.
func (f *fleet) hardened(t *testing.T) {
	t.Helper()
	for _, s := range services {
		for _, id := range f.containers(s) {
			require.Equal(t, "true [ALL] [no-new-privileges:true] 65532:65532", f.inspect(id,
				"{{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} {{.Config.User}}"), s)
			for _, port := range strings.Fields(f.inspect(id, "{{range .NetworkSettings.Ports}}{{range .}}{{.HostIp}} {{end}}{{end}}")) {
				require.Equal(t, "127.0.0.1", port, "%s can be reached from elsewhere", s)
			}
		}
	}
}

// judge compares what each client saw over broken lines with what a latecomer sees.
func (f *fleet) judge(talkers []*talker) {
	f.t.Helper()
	events, messages, losses := 0, 0, 0
	for i, d := range talkers {
		late := harness.Follow(f.t, client.Options{URL: f.url("/ws/session"), Token: f.token, Session: d.Session()})
		late.UntilSeq(d.Seq())
		frames := d.Frames()
		for j, x := range frames {
			require.EqualValues(f.t, j+1, x.Seq, "session %d", i)
		}
		require.True(f.t, slices.Equal(d.Raw(), late.Raw()[:len(frames)]), "session %d: a latecomer sees something else", i)
		for _, id := range d.sent {
			asked, answered := 0, 0
			is := harness.EndOf(id)
			for _, x := range frames {
				if x.Event == myagent.UserMessage && x.Meta().MessageID == id {
					asked++
				}
				if is(x) {
					answered++
				}
			}
			require.Equal(f.t, []int{1, 1}, []int{asked, answered}, "message %s of session %d", id, i)
		}
		lost, gaps := d.Losses()
		require.Empty(f.t, gaps)
		events, messages, losses = events+len(frames), messages+len(d.sent), losses+lost
	}
	f.t.Logf("%d clients, %d containers killed, %d lines lost: %d events, 0 lost, 0 doubled, 0 reordered; %d messages, each answered once",
		len(talkers), len(services), losses, events, messages)
}

// more adds gateways: they take new connections at once, and old ones stay.
func (f *fleet) more(talkers []*talker) {
	f.t.Helper()
	old := f.containers("gateway")
	f.compose("up", "-d", "--scale", "gateway=4", "--no-recreate")
	now := f.containers("gateway")
	require.Len(f.t, now, 4)
	before := make([]int, len(talkers))
	for i, d := range talkers {
		before[i], _ = d.Losses()
	}
	took := map[string]bool{}
	for _, id := range now {
		f.healthy(id)
	}
	for n := range 12 {
		f.talk(10 + n)
	}
	for _, id := range now {
		if !slices.Contains(old, id) && f.connections(id) > 0 {
			took[id] = true
		}
	}
	require.Len(f.t, took, 2, "the new gateways have connections")
	for i, d := range talkers {
		lost, _ := d.Losses()
		require.Equal(f.t, before[i], lost, "an old connection has not moved")
	}
}

var connections = regexp.MustCompile(`(?m)^waggle_gateway_connections\{[^}]*\} (\d+)$`)

// connections returns how many sockets a gateway has, as its metrics say.
func (f *fleet) connections(id string) int {
	f.t.Helper()
	addrs := strings.Fields(f.inspect(id, "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"))
	found := connections.FindAllStringSubmatch(harness.Get(f.t, "http://"+addrs[0]+":9000/metrics").Body, -1)
	require.NotEmpty(f.t, found)
	sum := 0
	for _, dialect := range found {
		n, err := strconv.Atoi(dialect[1])
		require.NoError(f.t, err)
		sum += n
	}
	return sum
}
