package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func TestLifecycle(t *testing.T) {
	t.Parallel()
	r := prepare(t, sharedBus(t))
	r.openDirectory()
	fresh := func() lifecycle.Component {
		r.reg = prometheus.NewRegistry()
		return r.server()
	}
	lifecycletest.Exercise(t, fresh)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	lifecycletest.StartFails(t, func() lifecycle.Component {
		r.reg = prometheus.NewRegistry()
		return r.server(func(c *gateway.Config, _ *gateway.Deps) { c.Addr = l.Addr().String() })
	})
}

// openDirectory gives the gateway a directory.
func (r *rig) openDirectory() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	var err error
	r.dir, err = directory.Open(ctx, r.conn)
	require.NoError(r.t, err)
	r.t.Cleanup(r.dir.Close)
}

// join lists a service until the test ends or leave is called.
func (r *rig) join(name string) (leave func()) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	lease, err := r.dir.Join(ctx, directory.Member{What: directory.WhatService, Name: id.MustName(name), Instance: id.MustName(unique())})
	require.NoError(r.t, err)
	leave = func() { _ = lease.Leave(context.Background()) }
	r.t.Cleanup(leave)
	return leave
}

// lists waits until the directory lists n instances of a service.
func (r *rig) lists(name string, n int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	require.NoError(r.t, r.dir.Wait(ctx, func(d *directory.Directory) bool {
		return len(d.Members(directory.WhatService, id.MustName(name))) == n
	}))
}

func TestInvalidConfigurations(t *testing.T) {
	r := prepare(t, sharedBus(t))
	for field, c := range map[string]gateway.Config{
		"addr":                    {},
		"gateway.queue_bytes":     {Addr: "127.0.0.1:0", QueueBytes: -1},
		"gateway.ping_interval":   {Addr: "127.0.0.1:0", PingInterval: -1},
		"gateway.per_ip":          {Addr: "127.0.0.1:0", PerIP: -1},
		"gateway.max_connections": {Addr: "127.0.0.1:0", MaxConnections: -1},
	} {
		_, err := gateway.New(c, r.deps())
		require.ErrorContains(t, err, field)
	}
	d := r.deps()
	d.Routes = nil
	_, err := gateway.New(gateway.Config{Addr: "127.0.0.1:0"}, d)
	require.ErrorContains(t, err, "dialect")
	_, err = gateway.New(gateway.Config{Addr: "127.0.0.1:0"}, gateway.Deps{})
	require.ErrorContains(t, err, "required")
}

// A drain asks every client to reconnect, spread over time. Queued frames still arrive, new
// sockets are refused, and probes see the reason.
func TestDrain(t *testing.T) {
	t.Parallel()
	const clients, spread = 20, 500 * time.Millisecond
	r := prepare(t, bustest.Single(t))
	r.openDirectory()
	for _, name := range []string{"session", "pipeline", "worker", "tools"} {
		r.join(name)
	}
	r.srv = r.server(func(c *gateway.Config, _ *gateway.Deps) { c.DrainSpread = spread })
	r.serve()
	r.lists("gateway", 1)
	l := r.session("default")
	all := make([]*client, clients)
	for i := range all {
		all[i] = r.dial("session=" + l.Entity.String())
		all[i].ready()
	}
	r.answers(l, "just before")
	const frames = 3 * clients // with those of the greeting
	eventually(t, "it is written to all clients, which is after its append", func() bool {
		return r.metric("waggle_gateway_frames_out_total") == frames
	})

	drained := make(chan error, 1)
	go func() { drained <- r.srv.Drain(context.Background()) }()
	r.lists("gateway", 0)
	status, body, _ := r.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.True(t, json.Valid([]byte(body)), body)
	_, status, body = r.handshake("")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "DRAINING")
	ends := make(chan error, clients)
	for _, c := range all {
		go func() {
			err := errHungUp // a client that fails the test ends its goroutine
			defer func() { ends <- err }()
			err = c.sentAway("just before")
		}()
	}
	for range all {
		require.NoError(t, <-ends)
	}
	require.NoError(t, <-drained)
	_, err := net.Dial("tcp", r.addr)
	require.Error(t, err, "the port is closed")
	require.Equal(t, float64(clients), r.metric("waggle_gateway_closes_total", "code", "1012"))
	r.srv.Stop()
}

// sentAway reads a message and the word to come back.
func (c *client) sentAway(message string) error {
	op, payload, err := c.read()
	if err != nil || op != opText || !bytes.Contains(payload, []byte(message)) {
		return fmt.Errorf("%q came instead of the message: %w", payload, err)
	}
	_, payload, err = c.read()
	closed, ok := errors.AsType[closedError](err)
	if !ok || closed.code != 1012 {
		return fmt.Errorf("%q came instead of the close frame: %w", payload, err)
	}
	return c.try(frame(fin|opClose, []byte{0x03, 0xf4}))
}

// A drain spreads its closes, ends with its context, and Stop cuts the remaining sockets.
func TestDrainOutOfTime(t *testing.T) {
	r := start(t, func(c *gateway.Config, _ *gateway.Deps) { c.DrainSpread = time.Hour })
	one, two := r.dial(""), r.dial("")
	one.ready()
	two.ready()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.srv.Drain(ctx), context.DeadlineExceeded)
	r.srv.Stop()
	away := 0
	for _, c := range []*client{one, two} {
		_, _, err := c.read()
		require.Error(t, err)
		if closed, ok := errors.AsType[closedError](err); ok && closed.code == 1012 {
			away++
		}
	}
	require.LessOrEqual(t, away, 1, "the second close comes half an hour after the first")
}

// Until all services are there, a socket is greeted, and what its client sends
// waits; then it is taken up in order.
func TestServicesThatStartLater(t *testing.T) {
	t.Parallel()
	r := prepare(t, bustest.Single(t))
	r.openDirectory()
	r.srv = r.server(func(c *gateway.Config, _ *gateway.Deps) { c.ReadyTimeout = maxWait })
	r.serve()
	l := r.session("default", "old")
	c := r.dial("session=" + l.Entity.String() + "&after=0")
	c.must("agent_start")
	require.Equal(t, "old", c.must("agent_response").Data.Message, "history needs no services")
	for i := range 5 {
		c.write(message(fmt.Sprint(i)))
	}
	r.join("session")
	r.join("pipeline")
	r.join("worker")
	c.expectSilence()
	require.Empty(t, r.inbox(l.Entity.String()))
	leave := r.join("tools")
	require.EqualValues(t, 2, c.must("agent_ready").Data.LastSeq)
	for i := range 5 {
		var m wirecmd.UserMessage
		require.NoError(t, r.nextCommand(l.Entity.String()).Decode(&m))
		require.Equal(t, fmt.Sprint(i), m.Content)
	}
	leave()
	r.lists("tools", 0)
	c.write(message("still taken"))
	r.nextCommand(l.Entity.String())
	other := r.dial("")
	other.must("agent_start")
	other.expectSilence()
	r.join("tools")
	other.must("agent_ready")
}

func TestServicesThatNeverStart(t *testing.T) {
	r := prepare(t, bustest.Single(t))
	r.openDirectory()
	r.srv = r.server(func(c *gateway.Config, _ *gateway.Deps) {
		c.ReadyTimeout, c.PingInterval = 100*time.Millisecond, 40*time.Millisecond
	})
	r.serve()
	settled := r.settled()
	c := r.dial("")
	c.must("agent_start")
	c.write(message("is anybody there?"))
	require.Equal(t, "OVERLOADED", c.must("error").Data.Code)
	c.closes(1013)
	settled()
}

// Without a bus every message is refused with a fault; sockets stay open and continue when the bus
// is back.
func TestLossOfTheBus(t *testing.T) {
	t.Parallel()
	i := bustest.Start(t, bus.DefaultTopology()) // on a port that nothing else takes meanwhile
	conn := bustest.Dial(t, i.URL)
	r := startOn(t, conn)
	l := r.session("default")
	c := r.dial("session=" + l.Entity.String())
	c.ready()
	i.Stop()
	eventually(t, "the loss is noticed", func() bool { return !conn.Up() })
	status, body, _ := r.get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "BUS_UNAVAILABLE")
	status, _, _ = r.get("/livez")
	require.Equal(t, http.StatusOK, status, "no bus is no reason to be killed")
	c.write(message("lost?"))
	c.refused("BUS_UNAVAILABLE")
	late := r.dial("")
	late.must("agent_start")
	late.refused("BUS_UNAVAILABLE")
	late.closes(1013)

	i.Start()
	eventually(t, "the gateway is ready again", func() bool { status, _, _ := r.get("/readyz"); return status == http.StatusOK })
	c.write(message("found"))
	require.JSONEq(t, `{"content":"found"}`, string(r.nextCommand(l.Entity.String()).Data))
	r.answers(l, "after all")
	require.Equal(t, "after all", c.must("agent_response").Data.Message)
}

// Streams with settings that this version cannot use make a gateway unready.
func TestInvalidStreamsMakeItUnready(t *testing.T) {
	t.Parallel()
	url, _ := bustest.Server(t)
	conn := bustest.Dial(t, url)
	require.NoError(t, conn.JS().DeleteStream(context.Background(), "EVT_07"))
	r := startOn(t, conn)
	eventually(t, "the gateway says why", func() bool {
		status, body, _ := r.get("/readyz")
		require.Equal(t, http.StatusServiceUnavailable, status)
		return strings.Contains(body, "not set up")
	})
}
