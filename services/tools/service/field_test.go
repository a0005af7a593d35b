package service_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/remote"
	"github.com/waggle-dev/waggle/services/tools/service"
	"github.com/waggle-dev/waggle/services/tools/swarm"
)

// field is a tool service with a gateway, which the test plays, for connected services.
type field struct {
	*rig
	bus  *bustest.Instance
	conn *bus.Conn
	dir  *directory.Directory
	gw   id.Name

	mu sync.Mutex
	n  int
}

// newField starts a tool service that is called within this process, or over the bus.
func newField(t testing.TB, cfg service.Config, overBus bool) *field {
	t.Helper()
	return newFieldAt(t, cfg, overBus, nil)
}

// newFieldAt is newField with the bus' clock.
func newFieldAt(t testing.TB, cfg service.Config, overBus bool, now func() time.Time) *field {
	t.Helper()
	if cfg.Services == nil {
		cfg.Services = []string{"*"}
	}
	top := bus.DefaultTopology()
	top.LeaseTTL = time.Hour // Members leave at the test's command.
	server := bustest.Start(t, top)
	url := server.URL
	open := func(c *bus.Conn) *directory.Directory {
		d, err := directory.Open(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(d.Close)
		return d
	}
	conn := bustest.Dial(t, url)
	f := &field{bus: server, conn: bustest.Dial(t, url), gw: id.MustName("gw")}
	f.dir = open(f.conn)
	cfg.Waits = cmp.Or(cfg.Waits, swarm.Waits{Confirm: maxWait, Lost: maxWait / 200, Return: maxWait / 100})
	f.rig = launch(t, cfg, service.Deps{Conn: conn, Directory: open(conn), Now: now})
	if overBus {
		f.Caller = remote.NewClient(bustest.Dial(t, url))
	}
	return f
}

func (f *field) box() tools.Toolbox { return f.Caller.(tools.Toolbox) } //nolint:forcetypeassert // Both are.

// participant is one connection of a service.
type participant struct {
	t           testing.TB
	f           *field
	lease       *directory.Lease
	participant command.Participant
	sub         *nats.Subscription
	calls       chan event.CallRequestedData
}

// reaction is a provider's reaction to a call.
type reaction func(*participant, event.CallRequestedData)

// connect registers a service and waits until the tool service sees it.
func (f *field) connect(t testing.TB, p command.Participant, do reaction) *participant {
	t.Helper()
	f.mu.Lock()
	f.n++
	connection := id.MustName(fmt.Sprintf("c%d", f.n))
	f.mu.Unlock()
	p.Kind, p.Gateway, p.Connection, p.Online = command.ParticipantService, f.gw.String(), connection.String(), true
	if p.Tenant.IsZero() {
		p.Tenant = id.DefaultTenant
	}
	if p.Status == "" {
		p.Status = command.StatusActive
	}
	if p.Since.IsZero() {
		p.Since = time.Now()
	}
	out := &participant{t: t, f: f, participant: p, calls: make(chan event.CallRequestedData, 1000)}
	var err error
	out.sub, err = f.conn.NATS().Subscribe(subject.Direct(f.gw, connection), func(m *nats.Msg) { out.take(m, do) })
	require.NoError(t, err)
	require.NoError(t, f.conn.NATS().Flush())
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	data, err := json.Marshal(p)
	require.NoError(t, err)
	out.lease, err = f.dir.Join(ctx, directory.Member{What: command.WhatService, Name: f.gw, Instance: connection, Data: data})
	require.NoError(t, err)
	out.seen(func(s tools.Server) bool { return s.ID == p.ID })
	return out
}

// take plays the gateway: it confirms a call and passes it on.
func (p *participant) take(m *nats.Msg, do reaction) {
	var e event.Event
	if err := json.Unmarshal(m.Data, &e); err != nil || e.Type != event.CallRequested || e.Sequence != 0 {
		p.t.Errorf("no call: %v %s", err, m.Data)
		return
	}
	log, err := subject.ParseName(e.Subject)
	if err != nil || log.Tenant != p.participant.Tenant {
		p.t.Errorf("not the tenant's: %v %s", err, e.Subject)
	}
	c, err := event.As[event.CallRequestedData](e)
	if err != nil || c.ServiceID != p.participant.ID {
		p.t.Errorf("no call of this service: %v %s", err, m.Data)
	}
	p.calls <- c
	if err := m.Respond([]byte("+")); err != nil {
		p.t.Errorf("confirm: %v", err)
	}
	go do(p, c)
}

// say sends the gateway's message to the caller.
func (p *participant) say(c event.CallRequestedData, n command.CallNews) {
	n.CallID, n.ServiceID = c.CallID, p.participant.ID
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(n); err != nil {
		p.t.Errorf("encode: %v", err)
	}
	_ = p.f.conn.NATS().Publish(c.Inbox, b.Bytes()) // Fails after the end of the test.
}

// set changes the service's directory entry, and waits until the tool service sees it.
func (p *participant) set(change func(*command.Participant)) {
	p.t.Helper()
	change(&p.participant)
	data, err := json.Marshal(p.participant)
	require.NoError(p.t, err)
	require.NoError(p.t, p.lease.Set(data))
}

// leave ends the connection.
func (p *participant) leave() {
	p.t.Helper()
	require.NoError(p.t, p.sub.Unsubscribe())
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	require.NoError(p.t, p.lease.Leave(ctx))
}

// seen waits until the tool service sees the entry.
func (p *participant) seen(is func(tools.Server) bool) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		list, err := p.f.svc.Servers(context.Background(), p.participant.Tenant, tools.KindService)
		for _, s := range list {
			if err == nil && is(s) {
				return true
			}
		}
		return false
	}, maxWait, 5*time.Millisecond)
}

// given returns the next call that the service received.
func (p *participant) given() event.CallRequestedData {
	p.t.Helper()
	select {
	case c := <-p.calls:
		return c
	case <-time.After(maxWait):
		p.t.Fatal("no call came")
		return event.CallRequestedData{}
	}
}

func answers(result string) reaction {
	return func(p *participant, c event.CallRequestedData) {
		p.say(c, command.CallNews{Final: true, Result: json.RawMessage(result)})
	}
}

func silent(*participant, event.CallRequestedData) {}

// echoes answers with the arguments.
func echoes(p *participant, c event.CallRequestedData) { answers(string(c.Arguments))(p, c) }

// serviceOf has one tool of each kind.
func serviceOf(name string) command.Participant {
	return command.Participant{ID: name, Name: "The " + name, Capabilities: []string{"one", "two"}, Tools: []command.ParticipantTool{
		{ID: "plain", Name: "Plain tool"},
		{ID: "again", Idempotent: true},
		{
			ID:           "strict",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}},"required":["a"]}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}`),
		},
	}}
}

// ask makes a call by kind, server and tool.
func ask(t testing.TB, server, tool string, a args) tools.Call {
	t.Helper()
	c := newCall(t, tool, a)
	c.Kind, c.Server, c.Raw = tools.KindService, server, true
	return c
}
