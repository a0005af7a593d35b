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
	const streams, most = 400, 38_000
	f := newFleet(t, scripted.Always(scripted.Stream(scripted.Text("hello"))))
	f.serve("session,pipeline,worker,tools")
	_, addr := f.gateway()
	asker := client.DialOrbit(t, "ws://"+addr+"/ws")
	asker.Until("agent_ready")
	asker.Ask("hello?")
	asker.Until("agent_response")

	telemetry := "http://" + f.telemetry[addr]
	measure := func() int {
		for range 5 { // each collection halves the stacks that are mostly unused
			require.Equal(t, http.StatusOK, process.Get(t, telemetry+"/debug/pprof/heap?gc=1&debug=1").Status)
		}
		return gauge(t, telemetry, "go_memstats_heap_alloc_bytes") + gauge(t, telemetry, "go_memstats_stack_inuse_bytes")
	}
	before := measure()
	tr := &http.Transport{MaxIdleConnsPerHost: -1}
	t.Cleanup(tr.CloseIdleConnections)
	for range streams {
		res, err := (&http.Client{Transport: tr}).Get("http://" + addr + "/agui/threads/" + asker.Session + "?follow=1")
		require.NoError(t, err)
		t.Cleanup(func() { _ = res.Body.Close() })
		require.Equal(t, http.StatusOK, res.StatusCode)
		in := bufio.NewReader(res.Body)
		for line := ""; !strings.Contains(line, "RUN_FINISHED"); { // it has been shown everything
			line, err = in.ReadString('\n')
			require.NoError(t, err)
		}
	}
	each := (measure() - before) / streams
	for tries := 10; each >= most && tries > 0; tries-- { // the garbage of their beginnings may take a while
		each = (measure() - before) / streams
	}
	require.Less(t, each, most, "bytes of an idle stream")
	t.Logf("an idle stream takes %d bytes", each)
}

// gauge returns the value of a metric that has no labels.
func gauge(t *testing.T, telemetry, name string) int {
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
