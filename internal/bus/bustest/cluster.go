package bustest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// Leftovers lists goroutines that libraries may leave behind: nats.go 1.55 when a Put of the object store ends before the
// goroutine that it started first runs, which then waits on an abandoned channel.
func Leftovers() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"),
	}
}

// ClusterHandle is a cluster of real servers, each in a separate process.
type ClusterHandle struct {
	t     testing.TB
	ports []int
	procs []*process
}

// Cluster starts n servers for this test alone and creates all streams with n replicas. It ends with the test. A cluster of one
// is a server without routes.
func Cluster(t testing.TB, n int) *ClusterHandle {
	t.Helper()
	ports, routes := freeport.Ports(t, 2*n), make([]string, 0, n)
	for _, p := range ports[n:] {
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", p))
	}
	h := &ClusterHandle{t: t, ports: ports[:n]}
	for i := range n {
		args := []string{"-name", fmt.Sprint("n", i), "-port", fmt.Sprint(ports[i]), "-dir", Store(t)}
		if n > 1 {
			args = append(args, "-cluster-port", fmt.Sprint(ports[n+i]), "-routes", strings.Join(routes, ","))
		}
		h.procs = append(h.procs, &process{args: args})
	}
	t.Cleanup(func() {
		for i := range h.procs {
			h.Crash(i)
		}
	})
	for i := range h.procs {
		h.Restart(i)
	}
	top := bus.DefaultTopology()
	top.Replicas = n
	Bootstrap(t, h.Conn(), top)
	return h
}

// URL names all servers, for connections that survive each of them.
func (h *ClusterHandle) URL() string {
	urls := make([]string, 0, len(h.ports))
	for _, p := range h.ports {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", p))
	}
	return strings.Join(urls, ",")
}

// Port returns the port of clients of server i.
func (h *ClusterHandle) Port(i int) int { return h.ports[i] }

// Replicas returns the number of servers, which is that of the copies of each stream.
func (h *ClusterHandle) Replicas() int { return len(h.procs) }

// Conn returns a new connection that ends with the test.
func (h *ClusterHandle) Conn() *bus.Conn {
	h.t.Helper()
	return Dial(h.t, h.URL())
}

// Kill ends server i in an orderly way: it transfers its leaderships. It does nothing if the server does not run.
func (h *ClusterHandle) Kill(i int) { h.procs[i].stop() }

// Crash ends server i with SIGKILL. It does nothing if the server does not run.
func (h *ClusterHandle) Crash(i int) { h.procs[i].crash() }

// Restart starts server i with its files.
func (h *ClusterHandle) Restart(i int) {
	h.t.Helper()
	h.procs[i].mustStart(h.t)
}

// LeaderOf returns the number of the server that leads the stream. It waits for an election.
func (h *ClusterHandle) LeaderOf(stream string) int {
	h.t.Helper()
	leader := -1
	c := h.Conn()
	defer c.Close()
	require.Eventually(h.t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		s, err := c.JS().Stream(ctx, stream)
		if err != nil {
			return false
		}
		info := s.CachedInfo().Cluster
		for i, p := range h.procs {
			if p.runs() && (len(h.procs) == 1 || info != nil && info.Leader == fmt.Sprint("n", i)) {
				leader = i
				return true
			}
		}
		return false
	}, MaxWait, 50*time.Millisecond, "no leader of %s", stream)
	return leader
}

// StepDown makes the leader of the stream transfer its leadership. It retries until a leader answers.
func (h *ClusterHandle) StepDown(c *bus.Conn, stream string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		m, err := c.NATS().Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil, 2*time.Second)
		return err == nil && !strings.Contains(string(m.Data), `"error"`)
	}, MaxWait, 50*time.Millisecond, "%s has no leader", stream)
}
