//go:build compose

package compose_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
	sdk "github.com/waggle-dev/waggle/sdk/go/waggle/myagent"
)

// services of docker-compose.yml that continue running.
var services = []string{
	"lb", "gateway", "session", "pipeline", "worker", "task", "team", "tools", "nats-1", "nats-2", "nats-3",
}

// talk opens a session through the load balancer.
func (f *fleet) talk(n int) *verify.Conversation {
	f.t.Helper()
	return verify.Converse(f.t, sdk.Options{
		URL: f.url("/ws/session"), Token: f.token, ClientID: fmt.Sprintf("client_%d", n), Language: "en_US",
	})
}

// TestAnyOneContainerMayBeKilled: while clients talk through the load balancer, each
// container in turn is killed, stays away for a while and comes back. In the end the
// clients have seen their whole sessions, nothing lost, doubled or out of order, and every
// question answered once.
func TestAnyOneContainerMayBeKilled(t *testing.T) {
	f := start(t, tools(t)[0])
	f.hardened(t)
	clients := []*verify.Conversation{f.talk(0), f.talk(1)}
	talking, stop := context.WithCancel(context.Background())
	defer stop()
	var all errgroup.Group
	for _, d := range clients {
		all.Go(func() error { return d.Ask(talking) })
	}
	further := func(what string) { verify.Further(t, what, clients) }
	further("the first answers")
	for _, s := range services {
		id := f.containers(s)[0]
		began, before := time.Now(), verify.Answers(clients)
		f.run("docker", "kill", id)
		if s == "gateway" || strings.HasPrefix(s, "nats-") {
			further("the talk goes on without " + s) // its replicas continue
		}
		f.run("docker", "start", id)
		f.healthy(id)
		further("the talk goes on after " + s)
		t.Logf("killed %s: %d answers and %.1f s later all is well", s, verify.Answers(clients)-before, time.Since(began).Seconds())
	}
	stop()
	require.NoError(t, all.Wait())
	t.Logf("%d containers killed; %s", len(services), verify.Conversations(t, clients))
	f.more(clients)
	f.quiet(t)
}

// quiet checks that the NATS servers had nothing to refuse, and that no log holds
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

// more adds gateways: they take new connections at once, and old ones stay.
func (f *fleet) more(clients []*verify.Conversation) {
	f.t.Helper()
	old := f.containers("gateway")
	f.compose("up", "-d", "--scale", "gateway=4", "--no-recreate")
	now := f.containers("gateway")
	require.Len(f.t, now, 4)
	before := make([]int, len(clients))
	for i, d := range clients {
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
	for i, d := range clients {
		lost, _ := d.Losses()
		require.Equal(f.t, before[i], lost, "an old connection has not moved")
	}
}

var connections = regexp.MustCompile(`(?m)^waggle_gateway_connections\{[^}]*\} (\d+)$`)

// connections returns how many sockets a gateway has, as its metrics say.
func (f *fleet) connections(id string) int {
	f.t.Helper()
	addrs := strings.Fields(f.inspect(id, "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"))
	found := connections.FindAllStringSubmatch(process.Get(f.t, "http://"+addrs[0]+":9464/metrics").Body, -1)
	require.NotEmpty(f.t, found)
	sum := 0
	for _, dialect := range found {
		n, err := strconv.Atoi(dialect[1])
		require.NoError(f.t, err)
		sum += n
	}
	return sum
}
