package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAViewerThatStopsReading: one of several viewers of long answers reads nothing until its
// gateway holds no more for it. No other viewer notices, and in the end it has seen the same
// as the others.
func TestAViewerThatStopsReading(t *testing.T) {
	t.Parallel()
	const most = 200 // answers of 120 KB each, beyond any buffer of a socket
	pieces := repeat(strings.Repeat("text ", 4000), 6)
	f := newFleet(t, scripted.Always(scripted.Stream(scripted.Every(5*time.Millisecond, pieces...))))
	f.configure("gateway: {queue_bytes: 65536}\n")
	f.serve("session,pipeline,worker,tools")
	_, addr := f.gateway()
	asker := client.DialOrbit(t, "ws://"+addr+"/ws")
	asker.Until("agent_ready")
	url := "ws://" + addr + "/ws?deltas=true&after=0&session=" + asker.Session
	all := make([]*client.Orbit, many(5, 100))
	for i := range all {
		all[i] = client.DialOrbit(t, url)
		all[i].Until("agent_ready")
	}
	lazy, brisk := all[0], all[1:]
	answers := 0
	for full := false; !full; answers++ {
		require.Less(t, answers, most, "the gateway holds everything for who does not read")
		asker.Ask("speak at length")
		asker.Until("agent_response")
		var g errgroup.Group
		for _, c := range brisk {
			g.Go(func() error { return c.ReadTo("agent_response", 1) })
		}
		require.NoError(t, g.Wait(), "the others are not disturbed")
		metrics := process.Get(t, "http://"+f.telemetry[addr]+"/metrics").Body
		require.Contains(t, metrics, "\nwaggle_log_viewer_lags_total ")
		full = !strings.Contains(metrics, "\nwaggle_log_viewer_lags_total 0\n")
	}
	require.NoError(t, lazy.ReadTo("agent_response", answers))
	want := spoken(brisk[0])
	require.NotEmpty(t, want)
	for i, c := range all {
		require.True(t, want == spoken(c), "viewer %d has seen the same text", i)
	}
	t.Logf("%d answers, %d KB; frames: lazy %d, others %d", answers, len(want)>>10, len(lazy.Frames), len(brisk[0].Frames))
}

func spoken(c *client.Orbit) string {
	var b strings.Builder
	for _, f := range c.Frames {
		if f.Type == "agent_delta" {
			b.WriteString(f.Data.Text)
		}
	}
	return b.String()
}
