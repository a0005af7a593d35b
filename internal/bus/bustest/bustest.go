// Package bustest runs real NATS servers for tests.
package bustest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Single returns a connection to a fresh account with all streams, on the server that all tests share. Both end with the test.
func Single(t testing.TB) *bus.Conn {
	t.Helper()
	return SinglePartitions(t, subject.DefaultPartitions)
}

// SinglePartitions returns a connection to a fresh account with all streams of an installation with n partitions. Both end
// with the test.
func SinglePartitions(t testing.TB, n subject.Partitions) *bus.Conn {
	t.Helper()
	url := Bare(t)
	Bootstrap(t, DialPartitions(t, url, n), bus.DefaultTopology())
	return DialPartitions(t, url, n) // as fresh as the account
}

// Bare returns the URL of an account without streams, which ends with the test.
func Bare(t testing.TB) string {
	t.Helper()
	url, drop := Account(t)
	t.Cleanup(drop)
	return url
}

// Server starts a server with all streams for this test alone and returns its URL. restart ends it and starts it again on
// the same port and files.
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

	t    testing.TB
	proc *process
}

// Start starts a server with the streams of the topology, for tests that stop it, fill it or change it. It ends with the test.
func Start(t testing.TB, top bus.Topology) *Instance {
	t.Helper()
	port := freeport.Port(t)
	i := &Instance{t: t, URL: fmt.Sprintf("nats://127.0.0.1:%d", port), proc: &process{args: []string{
		"-port", fmt.Sprint(port), "-dir", Store(t),
	}}}
	i.Start()
	t.Cleanup(i.Stop)
	Bootstrap(t, Dial(t, i.URL), top)
	return i
}

// Start starts the server again, on the same port and files.
func (i *Instance) Start() {
	i.t.Helper()
	i.proc.mustStart(i.t)
}

// Stop ends the server, if it runs. Its clients lose their connections, and it syncs its files.
func (i *Instance) Stop() { i.proc.stop() }

// Crash ends the server with SIGKILL.
func (i *Instance) Crash() { i.proc.crash() }

// Dial returns a connection that ends with the test.
func Dial(t testing.TB, url string) *bus.Conn {
	t.Helper()
	return DialPartitions(t, url, subject.DefaultPartitions)
}

// DialPartitions returns a connection to an installation with n partitions, which ends with the test.
func DialPartitions(t testing.TB, url string, n subject.Partitions) *bus.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), MaxWait)
	defer cancel()
	c, err := bus.Connect(ctx, bus.Config{URL: url, Name: t.Name(), Partitions: n})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// Down waits until the connection is lost.
func Down(t testing.TB, c *bus.Conn) {
	t.Helper()
	await(t, c, false)
}

// Up waits until the connection is there.
func Up(t testing.TB, c *bus.Conn) {
	t.Helper()
	await(t, c, true)
}

func await(t testing.TB, c *bus.Conn, up bool) {
	t.Helper()
	changed := make(chan struct{}, 1)
	defer c.Watch(func(bool) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	late := time.NewTimer(MaxWait)
	defer late.Stop()
	for c.Up() != up {
		select {
		case <-changed:
		case <-late.C:
			require.FailNow(t, "the connection does not change", "up: %v", c.Up())
		}
	}
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
	ctx, cancel := context.WithTimeout(context.Background(), MaxWait)
	defer cancel()
	require.NoError(t, bus.Bootstrap(ctx, c, top))
}
