package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAViewerThatStopsReading: one of a hundred viewers of a long answer reads
// nothing for 20 seconds. The gateway's memory stays bounded, no other viewer notices,
// and in the end it has seen the same frames as the others.
func TestAViewerThatStopsReading(t *testing.T) {
	const viewers, pause, questions = 100, 20 * time.Second, 40
	// 40 answers of 120 KB each: what is missed fits neither into the sockets' buffers
	// nor into the gateway's queue.
	pieces := repeat(strings.Repeat("text ", 4000), 6)
	f := newFleet(t, scripted.Always(scripted.Stream(scripted.Every(5*time.Millisecond, pieces...))))
	f.serve("session,pipeline,worker,tools")
	gw, addr := f.gateway()
	asker := client.DialOrbit(t, "ws://"+addr+"/ws")
	asker.Until("agent_ready")
	url := "ws://" + addr + "/ws?deltas=true&after=0&session=" + asker.Session
	all := make([]*client.Orbit, viewers)
	for i := range all {
		all[i] = client.DialOrbit(t, url)
		all[i].Until("agent_ready")
	}
	lazy := all[0]
	before := rss(t, gw.PID())
	var g, late errgroup.Group
	for _, c := range all[1:] {
		g.Go(func() error { return c.ReadTo("agent_response", questions) })
	}
	var peak int64
	late.Go(func() error {
		peak = watchRSS(gw.PID(), pause) // the pause; a gateway bears with 30 s of it
		return lazy.ReadTo("agent_response", questions)
	})
	for range questions {
		asker.Ask("speak at length")
		asker.Until("agent_response")
	}
	require.NoError(t, g.Wait(), "the others are not disturbed")
	require.NoError(t, late.Wait())
	want := spoken(all[1])
	require.NotEmpty(t, want)
	for i, c := range all {
		require.Equal(t, len(want), len(spoken(c)), "viewer %d", i)
		require.True(t, want == spoken(c), "viewer %d has seen the same text", i)
	}
	t.Logf("answer %d KB, gateway RSS %d MB before, %d MB at most while one of %d viewers read nothing for %s; frames: lazy %d, others %d",
		len(want)>>10, before>>20, peak>>20, viewers, pause, len(lazy.Frames), len(all[1].Frames))
	require.Less(t, peak-before, int64(400<<20), "memory stays bounded")
}

func repeat(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%05d %s", i, s)
	}
	return out
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

// watchRSS returns the highest resident size of the process over the time.
func watchRSS(pid int, d time.Duration) int64 {
	var peak int64
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(d); ; {
		select {
		case <-end:
			return peak
		case <-tick.C:
			peak = max(peak, resident(pid))
		}
	}
}

func rss(t *testing.T, pid int) int64 {
	t.Helper()
	n := resident(pid)
	require.Positive(t, n)
	return n
}

// resident returns the resident size of a process in bytes, 0 if it is gone.
func resident(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
