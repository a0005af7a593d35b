package bus_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/bus/embedded"
	"github.com/waggle-dev/waggle/internal/freeport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

func maxWait(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), bustest.MaxWait)
	t.Cleanup(cancel)
	return ctx
}

// states records the states of a connection.
type states struct{ ch chan bool }

func watch(t *testing.T, c *bus.Conn) states {
	s := states{make(chan bool, 100)}
	t.Cleanup(c.Watch(func(up bool) { s.ch <- up }))
	return s
}

func TestAConnectionComesBackAndSaysSo(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, in.URL)
	s := watch(t, c)
	require.True(t, c.Up())
	for range 2 {
		in.Stop()
		require.False(t, <-s.ch)
		require.False(t, c.Up())
		// Nothing is queued: a publish fails at once.
		require.ErrorIs(t, c.NATS().Publish("x", nil), nats.ErrReconnectBufExceeded)
		_, err := c.JS().Publish(maxWait(t), "cmd.a.00.b.c.d", nil)
		require.Error(t, err)
		in.Start()
		require.True(t, <-s.ch)
		require.True(t, c.Up())
		_, err = c.JS().Publish(maxWait(t), "cmd.a.00.b.c.d", nil)
		require.NoError(t, err)
	}
	require.Empty(t, s.ch)
}

func TestWhoNoLongerWatchesIsNotTold(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, in.URL)
	c.Watch(func(bool) { t.Error("told all the same") })()
	c.OnSlow(func(*nats.Subscription) { t.Error("told all the same") })()
	s := watch(t, c)
	in.Stop()
	require.False(t, <-s.ch)
}

func TestASlowSubscriptionIsReported(t *testing.T) {
	t.Parallel()
	c := bustest.Single(t)
	slow := make(chan *nats.Subscription, 10)
	defer c.OnSlow(func(s *nats.Subscription) { slow <- s })()
	release := make(chan struct{})
	sub, err := c.NATS().Subscribe("x", func(*nats.Msg) { <-release })
	require.NoError(t, err)
	require.NoError(t, sub.SetPendingLimits(2, -1))
	for range 10 {
		require.NoError(t, c.NATS().Publish("x", nil))
	}
	require.Same(t, sub, <-slow)
	close(release)
}

func TestConnectWaitsForTheServerWithinItsContext(t *testing.T) {
	t.Parallel()
	port := freeport.Port(t)
	url := fmt.Sprint("nats://127.0.0.1:", port)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := bus.Connect(short, bus.Config{URL: url})
	require.ErrorContains(t, err, url)

	type result struct {
		*bus.Conn
		error
	}
	got := make(chan result)
	go func() {
		c, err := bus.Connect(maxWait(t), bus.Config{URL: url, Name: "waggle/test"})
		got <- result{c, err}
	}()
	srv, err := embedded.Start(embedded.Config{Port: port, StoreDir: bustest.Store(t), Sync: bustest.SyncEvery})
	require.NoError(t, err)
	t.Cleanup(func() { end(srv) })
	r := <-got
	require.NoError(t, r.error)
	defer r.Close()
	require.Equal(t, "waggle/test", r.NATS().Opts.Name)
	other := bustest.Dial(t, url)
	require.NotEqual(t, r.Instance(), other.Instance())
}

func end(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	in := bustest.Start(t, bus.DefaultTopology())
	c := bustest.Dial(t, in.URL)
	var both sync.WaitGroup
	both.Go(c.Close)
	both.Go(c.Close)
	both.Wait()
	c.Close()
	require.False(t, c.Up())
	cut := bustest.Dial(t, in.URL)
	s := watch(t, cut)
	in.Stop()
	require.False(t, <-s.ch)
	cut.Close() // does not wait for an absent server
}

func TestBadCredentialsFilesAreNamed(t *testing.T) {
	t.Parallel()
	_, err := bus.Connect(t.Context(), bus.Config{NKeySeedFile: "/no/such/seed"})
	require.ErrorContains(t, err, "nkey seed file")
	in := bustest.Start(t, bus.DefaultTopology())
	for _, cfg := range []bus.Config{
		{URL: in.URL, TLSCA: "/no/such/ca.pem"},
		{URL: in.URL, TLSCert: "/no/such/cert.pem", TLSKey: "/no/such/key.pem"},
		{URL: in.URL, Creds: "/no/such/user.creds"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := bus.Connect(ctx, cfg)
		cancel()
		require.ErrorContains(t, err, "no such file")
	}
	require.False(t, errors.Is(err, context.Canceled))
}
