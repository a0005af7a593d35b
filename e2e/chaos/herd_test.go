//go:build nightly

package chaos_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/chaos/load"
	"github.com/waggle-dev/waggle/e2e/chaos/site"
	"github.com/waggle-dev/waggle/e2e/harness/process"
)

var (
	sockets = flag.Int("sockets", 500, "idle sockets on one gateway")
	herd    = flag.Int("herd", 300, "viewers that come back at once")
)

const (
	// socketBytes and socketGoroutines are bounds of what an idle socket may cost a
	// gateway; 16 KiB and 1 are the goals, and the figures are printed.
	socketBytes      = 48 << 10
	socketGoroutines = 1.2
	// slack is what a gateway's memory may grow by otherwise, while it serves.
	slack = 64 << 20
	// rest lets the runtime give back what the handshakes needed.
	rest = 5 * time.Second
	// back is how long the herd may take; the goal is 30 s on a quiet machine.
	back = 90 * time.Second
)

// TestTenThousandSockets: what idle sockets cost a gateway, and how fast they are made.
func TestTenThousandSockets(t *testing.T) {
	n := *sockets
	require.NoError(t, load.RaiseFiles(n))
	fleet := site.New(t, site.Options{})
	gateway := fleet.Gateways[0]
	before, err := gateway.Memory()
	require.NoError(t, err)
	routines, err := gateway.Metric(t.Context(), "go_goroutines")
	require.NoError(t, err)
	conns, took, err := load.Sockets(t.Context(), gateway.Addr, "/ws/session", site.KeyOf("red"), n)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	require.NoError(t, err)
	rested := time.NewTimer(rest)
	defer rested.Stop()
	<-rested.C
	after, err := gateway.Memory()
	require.NoError(t, err)
	more, err := gateway.Metric(t.Context(), "go_goroutines")
	require.NoError(t, err)
	t.Logf("%d idle sockets: %.0f a second; RSS %d MiB, before %d MiB: %.1f KiB each; %.0f goroutines, before %.0f: %.2f each",
		n, float64(n)/took.Seconds(), after>>20, before>>20, float64(after-before)/1024/float64(n), more, routines, (more-routines)/float64(n))
	require.Less(t, after-before, n*socketBytes+slack)
	require.Less(t, (more - routines), socketGoroutines*float64(n)+100)
}

// TestAHerdComesBack: a gateway is killed, and all its viewers come back at once. They
// see what was said meanwhile, once.
func TestAHerdComesBack(t *testing.T) {
	n := *herd
	require.NoError(t, load.RaiseFiles(n))
	fleet := site.New(t, site.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sessions, again := load.Chats(ctx, t, fleet, "herd", 5)
	viewers := load.WatchSessions(ctx, fleet.Gateways[0].Addr, sessions, n)
	process.Eventually(t, fmt.Sprintf("%d viewers are there", n), func() bool { return viewers.There() == n })
	viewers.Allow(fleet.Gateways[0].Addr, fleet.Gateways[1].Addr)
	before := viewers.Times()
	began := time.Now()
	proof, err := fleet.Gateways[0].Kill()
	require.NoError(t, err)
	t.Log(proof)
	fleet.Gateways[0].Start()
	for end := began.Add(back); !viewers.Returned(before); {
		require.True(t, time.Now().Before(end), "%d of %d viewers have come back", viewers.There(), n)
		pause := time.NewTimer(10 * time.Millisecond)
		<-pause.C
	}
	took := time.Since(began)
	ends, err := again()
	require.NoError(t, err)
	process.Eventually(t, "they have seen everything", func() bool {
		behind, _ := viewers.Behind(ends)
		return behind == 0
	})
	_, twice := viewers.Behind(ends)
	require.Zero(t, twice)
	t.Logf("%d viewers of %d sessions were back %.1f s after the kill; each has seen everything once", n, len(sessions), took.Seconds())
}
