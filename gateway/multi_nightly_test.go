//go:build nightly

package gateway_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// A socket is one goroutine, its reader, however many sessions it holds.
func TestGateGoroutinesPerSessionSocket(t *testing.T) {
	const idle, each = 50, 3
	r, _ := startMulti(t)
	var logs []subject.Log
	for range idle * each {
		logs = append(logs, r.session("default"))
	}
	before := runtime.NumGoroutine()
	for i := range idle {
		c, _ := r.dialMulti()
		for _, l := range logs[i*each : (i+1)*each] {
			c.resume(l, 1)
			c.expectFrame("replayed")
		}
	}
	require.EqualValues(t, idle*each, r.metric("waggle_gateway_sessions"))
	eventually(t, "one goroutine a socket", func() bool { return runtime.NumGoroutine() <= before+idle+3 })
	t.Logf("%d goroutines for %d sockets with %d sessions each", runtime.NumGoroutine()-before, idle, each)
}
