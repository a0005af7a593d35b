//go:build nightly

package e2e_test

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestIdleStreamsKeepSmallStacks: an idle stream of a gateway with all its handlers takes 34 KB. It takes 8 KB more once the frames
// of these handlers do not fit into a stack of 8 KiB, which the race detector's own frames hide from other tests.
func TestIdleStreamsKeepSmallStacks(t *testing.T) {
	for name, c := range map[string]struct{ path, last string }{
		"thread of AG-UI": {"/agui/threads/{session}?follow=1", "RUN_FINISHED"},
		"events of a log": {"/api/v1/sessions/{session}/stream", "run.completed"},
		"several topics":  {"/api/v1/live?t=log:session/{session}@0", "run.completed"},
	} {
		t.Run(name, func(t *testing.T) {
			const streams, most = 400, 38_000
			f := newFleet(t, scripted.Always(scripted.Stream(scripted.Text("hello"))))
			f.serve("session,pipeline,worker,tools")
			_, addr := f.gateway()
			asker := client.DialOrbit(t, "ws://"+addr+"/ws")
			asker.Until("agent_ready")
			asker.Ask("hello?")
			asker.Until("agent_response")
			url := "http://" + addr + strings.ReplaceAll(c.path, "{session}", asker.Session)

			before := f.memory(addr)
			idle(t, url, c.last, streams)
			each := (f.memory(addr) - before) / streams
			for tries := 10; each >= most && tries > 0; tries-- { // the garbage of their beginnings may take a while
				each = (f.memory(addr) - before) / streams
			}
			t.Logf("an idle stream takes %d bytes", each)
			require.Less(t, each, most, "bytes of an idle stream")
		})
	}
}

// idle opens streams and reads each up to the event that is the last.
func idle(t *testing.T, url, last string, streams int) {
	t.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: -1}
	t.Cleanup(tr.CloseIdleConnections)
	for range streams {
		res, err := (&http.Client{Transport: tr}).Get(url)
		require.NoError(t, err)
		t.Cleanup(func() { _ = res.Body.Close() })
		require.Equal(t, http.StatusOK, res.StatusCode)
		in := bufio.NewReader(res.Body)
		for line := ""; !strings.Contains(line, last); {
			line, err = in.ReadString('\n')
			require.NoError(t, err)
		}
	}
}

// memory returns the bytes of the gateway's heap and stacks that are in use.
func (f *fleet) memory(addr string) int {
	f.t.Helper()
	telemetry := "http://" + f.telemetry[addr]
	for range 5 { // each collection halves the stacks that are mostly unused
		require.Equal(f.t, http.StatusOK, process.Get(f.t, telemetry+"/debug/pprof/heap?gc=1&debug=1").Status)
	}
	return gauge(f.t, telemetry, "go_memstats_heap_alloc_bytes") + gauge(f.t, telemetry, "go_memstats_stack_inuse_bytes")
}

// gauge returns the value of a metric that has no labels.
func gauge(t testing.TB, telemetry, name string) int {
	t.Helper()
	for line := range strings.Lines(process.Get(t, telemetry+"/metrics").Body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			require.NoError(t, err)
			return int(n)
		}
	}
	require.Fail(t, "the metric does not exist", name)
	return 0
}
