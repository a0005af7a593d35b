// Package bustest runs real NATS servers for tests.
package bustest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Patience bounds every wait for a server: long, because machines may be busy.
const Patience = 60 * time.Second

// SyncEvery is the interval at which a server within a test's process syncs its files. It is long, because
// nats-server 2.15 arms its sync timer before it has stored it, which the race detector reports if a short interval
// ends first. The page cache keeps the writes of a server that ends within this process anyway.
const SyncEvery = "1h"

// Single returns a connection to a fresh server with all streams. Both end with the test.
func Single(t testing.TB) *bus.Conn {
	t.Helper()
	return SinglePartitions(t, subject.DefaultPartitions)
}

// SinglePartitions returns a connection to a fresh server with all streams of an installation with n partitions. Both end with
// the test.
func SinglePartitions(t testing.TB, n subject.Partitions) *bus.Conn {
	t.Helper()
	url := Bare(t)
	Bootstrap(t, DialPartitions(t, url, n), bus.DefaultTopology())
	return DialPartitions(t, url, n) // as fresh as the server
}

// Bare starts a fresh server without streams, which ends with the test, and returns its URL.
func Bare(t testing.TB) string {
	t.Helper()
	srv := start(t, bus.EmbeddedConfig{Name: "test", Port: -1, StoreDir: Store(t), Sync: SyncEvery})
	t.Cleanup(func() { stop(srv) })
	return srv.ClientURL()
}

// Server starts a fresh server with all streams and returns its URL. restart ends it and starts it again on the same
// port and files.
func Server(t testing.TB) (url string, restart func()) {
	t.Helper()
	i := Start(t, bus.DefaultTopology())
	return i.URL, func() {
		t.Helper()
		i.Stop()
		i.Start()
	}
}

// Instance is a server that a test may stop for a while.
type Instance struct {
	URL string

	t   testing.TB
	cfg bus.EmbeddedConfig
	srv *server.Server
}

// Start starts a fresh server with the streams of the topology. It ends with the test.
func Start(t testing.TB, top bus.Topology) *Instance {
	t.Helper()
	i := &Instance{t: t, cfg: bus.EmbeddedConfig{Name: "test", Port: freeport.Port(t), StoreDir: Store(t), Sync: SyncEvery}}
	i.Start()
	t.Cleanup(i.Stop)
	i.URL = i.srv.ClientURL()
	Bootstrap(t, Dial(t, i.URL), top)
	return i
}

// Start starts the server again, on the same port and files.
func (i *Instance) Start() {
	i.t.Helper()
	i.srv = start(i.t, i.cfg)
}

// Stop ends the server, if it runs.
func (i *Instance) Stop() {
	if i.srv != nil {
		stop(i.srv)
		i.srv = nil
	}
}

// Dial returns a connection that ends with the test.
func Dial(t testing.TB, url string) *bus.Conn {
	t.Helper()
	return DialPartitions(t, url, subject.DefaultPartitions)
}

// DialPartitions returns a connection to an installation with n partitions, which ends with the test.
func DialPartitions(t testing.TB, url string, n subject.Partitions) *bus.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	c, err := bus.Connect(ctx, bus.Config{URL: url, Name: t.Name(), Partitions: n})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// Fill publishes messages of 15 KiB to the subjects, until these have so many bytes in all. Streams take all of them.
func Fill(t testing.TB, c *bus.Conn, bytes int, subject func(i int) string) {
	t.Helper()
	const size, unanswered = 15 << 10, 100
	var sent []jetstream.PubAckFuture
	for i := range bytes / size {
		f, err := c.JS().PublishAsync(subject(i), make([]byte, size))
		require.NoError(t, err)
		sent = append(sent, f)
		if len(sent) < unanswered && i < bytes/size-1 {
			continue
		}
		for _, f := range sent {
			select {
			case <-f.Ok():
			case err := <-f.Err():
				require.NoError(t, err)
			}
		}
		sent = sent[:0]
	}
}

// Bootstrap creates the streams of the topology.
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
