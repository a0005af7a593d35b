// Package bustest runs real NATS servers for tests.
package bustest

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
)

// Patience bounds every wait for a server: long, because machines may be busy.
const Patience = 60 * time.Second

// Single returns a connection to a fresh server with all streams. Both end with
// the test.
func Single(t testing.TB) *bus.Conn {
	t.Helper()
	url, _ := Server(t)
	return Dial(t, url)
}

// Server starts a fresh server with all streams and returns its URL. restart ends
// it and starts it again on the same port and files.
func Server(t testing.TB) (url string, restart func()) {
	t.Helper()
	cfg := bus.EmbeddedConfig{Name: "test", Port: -1, StoreDir: t.TempDir()}
	s := start(t, cfg)
	t.Cleanup(func() { stop(s) })
	url = s.ClientURL()
	Bootstrap(t, Dial(t, url), bus.DefaultTopology())
	return url, func() {
		t.Helper()
		addr, ok := s.Addr().(*net.TCPAddr)
		require.True(t, ok)
		cfg.Port = addr.Port
		stop(s)
		s = start(t, cfg)
	}
}

// Dial returns a connection that ends with the test.
func Dial(t testing.TB, url string) *bus.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	c, err := bus.Connect(ctx, bus.Config{URL: url, Name: t.Name()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// Bootstrap makes the streams of the topology.
func Bootstrap(t testing.TB, c *bus.Conn, top bus.Topology) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	require.NoError(t, bus.Bootstrap(ctx, c, top))
}

func start(t testing.TB, cfg bus.EmbeddedConfig) *server.Server {
	t.Helper()
	s, err := bus.StartEmbedded(cfg)
	require.NoError(t, err)
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}
