package bustest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// Leftovers lists goroutines that libraries may leave behind: nats-server 2.15 when a server of a cluster ends while
// it still restores its streams, and nats.go 1.55 when a Put of the object store ends before the goroutine that it
// started first runs: that one then waits on an abandoned channel.
func Leftovers() []goleak.Option {
	const pkg = "github.com/nats-io/nats-server/v2/server"
	return []goleak.Option{
		goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"),
		goleak.IgnoreAnyFunction(pkg + ".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction(pkg + "/ats.Register.func1"),
	}
}

// ClusterHandle is a cluster of real servers in this process.
type ClusterHandle struct {
	t       testing.TB
	cfg     []bus.EmbeddedConfig
	servers []*server.Server
}

// Cluster starts n servers and creates all streams with n replicas. It ends with the test.
func Cluster(t testing.TB, n int) *ClusterHandle {
	t.Helper()
	h := &ClusterHandle{t: t, servers: make([]*server.Server, n)}
	ports, routes := freeport.Ports(t, 2*n), []string{}
	for _, p := range ports[n:] {
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", p))
	}
	for i := range n {
		h.cfg = append(h.cfg, bus.EmbeddedConfig{
			Name: fmt.Sprint("n", i), Port: ports[i], StoreDir: Store(t), Sync: SyncEvery,
			ClusterName: "test", ClusterPort: ports[n+i], Routes: routes,
		})
	}
	t.Cleanup(func() {
		for i := range h.servers {
			h.Kill(i)
		}
	})
	for i := range h.servers {
		h.Restart(i)
	}
	top := bus.DefaultTopology()
	top.Replicas = n
	Bootstrap(t, h.Conn(), top)
	return h
}

// URL names all servers, for connections that survive each of them.
func (h *ClusterHandle) URL() string {
	urls := make([]string, 0, len(h.cfg))
	for _, c := range h.cfg {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", c.Port))
	}
	return strings.Join(urls, ",")
}

// Conn returns a new connection that ends with the test.
func (h *ClusterHandle) Conn() *bus.Conn {
	h.t.Helper()
	return Dial(h.t, h.URL())
}

// Kill ends server i without warning its clients. A server in the test's process transfers its leaderships as it
// ends; a kill -9 requires its own process.
func (h *ClusterHandle) Kill(i int) {
	if h.servers[i] != nil {
		stop(h.servers[i])
		h.servers[i] = nil
	}
}

// Restart starts server i with its files.
func (h *ClusterHandle) Restart(i int) {
	h.t.Helper()
	h.servers[i] = start(h.t, h.cfg[i])
}

// LeaderOf returns the number of the server that leads the stream. It waits for an election.
func (h *ClusterHandle) LeaderOf(stream string) int {
	h.t.Helper()
	leader := -1
	require.Eventually(h.t, func() bool {
		for i, s := range h.servers {
			if s != nil && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
				leader = i
				return true
			}
		}
		return false
	}, Patience, 50*time.Millisecond, "no leader of %s", stream)
	return leader
}

// StepDown makes the leader of the stream transfer its leadership. It retries until a leader answers.
func (h *ClusterHandle) StepDown(c *bus.Conn, stream string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		m, err := c.NATS().Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 2*time.Second)
		return err == nil && !strings.Contains(string(m.Data), `"error"`)
	}, Patience, 50*time.Millisecond, "%s has no leader", stream)
}
