//go:build nightly

package gateway_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	auditlog "github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// TestIdleStreamsTakeLittleMemory: the clients are in another process. The gateway has an audit log and pages, as that of an
// installation has: their handlers are on the stack of a stream, too.
func TestIdleStreamsTakeLittleMemory(t *testing.T) {
	c := sharedBus(t)
	w, err := auditlog.New(c, auditlog.Options{CloseMaxWait: time.Hour})
	require.NoError(t, err)
	t.Cleanup(w.Close)
	r := startOn(t, c, func(c *gateway.Config, d *gateway.Deps) {
		c.MaxConnections, c.PerIP = *idleStreams+1000, *idleStreams+1000
		d.Audit, d.Pages = w, emptyPages{}
	})
	long := strings.Repeat("x", 64<<10) // shown messages take no memory of an idle stream
	name, _ := r.thread(append(running("one"), event.MessageCompletedData{MessageID: "m", RunID: "w-one", Attempt: 1, Content: long})...)
	measure := func() int64 {
		for range 5 { // the second one frees the contents of pools, and each one halves stacks that are mostly unused
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	before := measure()
	defer sockets(t, r.addr, "/agui/threads/"+name+"?follow=1", *idleStreams)()
	eventually(t, "all streams are open", func() bool { return r.metric("waggle_gateway_connections") >= float64(*idleStreams) })
	took := measure() - before
	t.Logf("%d idle streams: %d MB of heap and stacks, %.1f KiB each", *idleStreams, took/1_000_000, float64(took)/float64(*idleStreams)/1024)
	require.Less(t, took, int64(*idleStreams*maxIdleStream))
}
