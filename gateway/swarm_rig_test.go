package gateway_test

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/asp"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Paths of the participants of the swarm.
const (
	pathClient  = "/ws/asp/client"
	pathAgent   = "/ws/asp/agent"
	pathService = "/ws/asp/service"
)

// swarm is a gateway for the participants of a swarm, with a task service of the test.
type swarm struct {
	*rig
	tasks *taskService
}

// withSwarm adds the routes of the swarm to the gateway.
func withSwarm(d *directory.Directory) option {
	return func(_ *gateway.Config, dep *gateway.Deps) {
		s := asp.Settings{ServerVersion: "test", Heartbeat: time.Second}
		dep.Directory = d
		dep.Routes = maps.Clone(dep.Routes)
		dep.Routes[pathClient], dep.Routes[pathAgent], dep.Routes[pathService] = gateway.Swarm(asp.Client(s)), gateway.Swarm(asp.Agent(s)), gateway.Swarm(asp.Service(s))
	}
}

// startSwarm starts a gateway on the shared server.
func startSwarm(t testing.TB, opts ...option) *swarm {
	t.Helper()
	s := &swarm{rig: prepare(t, sharedBus(t))}
	s.dir = openDirectory(t, s.rig)
	s.tasks = startTaskService(s.rig)
	s.srv = s.server(append([]option{withSwarm(s.dir), unlimited}, opts...)...)
	s.serve()
	return s
}

func openDirectory(t testing.TB, r *rig) *directory.Directory {
	t.Helper()
	d, err := directory.Open(context.Background(), r.conn)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// another starts a second gateway over a connection of its own. The test's services are
// those of the first.
func (s *swarm) another(opts ...option) *swarm {
	s.t.Helper()
	r := &rig{t: s.t, conn: sharedBus(s.t), log: s.log, reg: prometheus.NewRegistry(), commands: s.commands}
	r.dir = openDirectory(s.t, r)
	r.srv = r.server(append([]option{withSwarm(r.dir), unlimited}, opts...)...)
	r.serve()
	return &swarm{rig: r, tasks: s.tasks}
}

// taskService answers requests in place of the task service.
type taskService struct {
	r     *rig
	dir   *directory.Directory
	lease *directory.Lease

	mu     sync.Mutex
	tokens map[string]wirecmd.OpenClientRequest // by client: its first request, with the token
	acked  map[string]uint64
	asked  []wirecmd.ParticipantRequest
	task   wirecmd.TaskView
	agents []wirecmd.Participant // of a list, in the order of Place; nil = one
	tools  chan struct{}         // a run of a tool waits for it; nil = it does not
	began  chan struct{}
}

func startTaskService(r *rig) *taskService {
	d := &taskService{r: r, tokens: map[string]wirecmd.OpenClientRequest{}, acked: map[string]uint64{}, began: make(chan struct{}, 1000)}
	elsewhere := sharedBus(r.t) // the service has a connection, and a copy of the directory, of its own
	d.dir = openDirectory(r.t, &rig{t: r.t, conn: elsewhere})
	srv := rpc.NewServer(elsewhere, rpc.Config{Service: wirecmd.Task, Logger: zerolog.Nop(), Directory: d.dir})
	rpc.Handle(srv, wirecmd.OpenClient, d.open)
	rpc.Handle(srv, wirecmd.NameClient, d.note)
	rpc.Handle(srv, wirecmd.ListAgents, d.list)
	rpc.Handle(srv, wirecmd.ListClients, d.clients)
	rpc.Handle(srv, wirecmd.RunTool, d.run)
	rpc.Handle(srv, wirecmd.Submit, d.view)
	rpc.Handle(srv, wirecmd.ShowTask, d.view)
	require.NoError(r.t, srv.Start(context.Background()))
	r.t.Cleanup(srv.Stop)
	lease, err := r.dir.Join(context.Background(), directory.Member{
		What: directory.WhatService, Name: wirecmd.Task, Instance: id.MustName(unique()),
	})
	require.NoError(r.t, err)
	d.lease = lease
	return d
}

func (d *taskService) open(_ context.Context, in wirecmd.OpenClientRequest) (out wirecmd.OpenClientReply, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in.ClientID == "" {
		in.ClientID, in.Token = unique(), "token-"+unique()
		d.tokens[in.ClientID] = in
		out.Token = in.Token
		l := clientLog(in.Tenant.String(), in.ClientID)
		if err := d.r.append(l, "created", event.InboxCreatedData{ClientID: in.ClientID}); err != nil {
			return out, err
		}
		out.ClientID, out.After = in.ClientID, eventlog.Cursor{Seq: 1}.String()
		return out, nil
	}
	made, known := d.tokens[in.ClientID]
	if !known || made.Token != in.Token || made.Tenant != in.Tenant || made.Principal != in.Principal {
		return out, fault.New(fault.ClientNotFound)
	}
	after := eventlog.Cursor{Seq: d.acked[in.ClientID]}
	if in.After != nil {
		after.Seq = *in.After
	}
	return wirecmd.OpenClientReply{ClientID: in.ClientID, After: after.String(), Resumed: true}, nil
}

func (d *taskService) note(_ context.Context, in wirecmd.ParticipantRequest) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, in)
	return in.Data, nil
}

func (d *taskService) list(ctx context.Context, in wirecmd.ParticipantRequest) (out wirecmd.ParticipantList, err error) {
	if _, err = d.note(ctx, in); err != nil {
		return out, err
	}
	var f wirecmd.ParticipantFilter
	if err := json.Unmarshal(in.Data, &f); err != nil {
		return out, err
	}
	all := d.agents
	if all == nil {
		all = []wirecmd.Participant{{ID: "listed", Tenant: in.Tenant}}
	}
	return pageOf(all, f)
}

// pageOf returns a page of at most 3 of the participants that pass the filter by name.
func pageOf(all []wirecmd.Participant, f wirecmd.ParticipantFilter) (out wirecmd.ParticipantList, err error) {
	size := 3
	if f.Limit > 0 {
		size = min(size, f.Limit)
	}
	for _, p := range all {
		ok, err := p.Follows(f.After)
		switch {
		case err != nil:
			return out, err
		case !ok || !strings.HasPrefix(p.Name, f.Prefix):
			continue
		}
		if out.More = len(out.Participants) == size; out.More {
			return out, nil
		}
		out.Participants = append(out.Participants, p)
	}
	return out, nil
}

// view answers with the task that the test has set.
func (d *taskService) view(ctx context.Context, in wirecmd.ParticipantRequest) (wirecmd.TaskView, error) {
	_, err := d.note(ctx, in)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.task, err
}

// clients lists the clients of the service's copy of the directory.
func (d *taskService) clients(_ context.Context, _ wirecmd.ParticipantRequest) (out wirecmd.ParticipantList, err error) {
	for _, m := range d.dir.All(wirecmd.WhatClient) {
		var p wirecmd.Participant
		if err := json.Unmarshal(m.Data, &p); err != nil {
			return out, err
		}
		out.Participants = append(out.Participants, p)
	}
	return out, nil
}

// run runs a tool; if tools is set, it lasts until the test sends to tools.
func (d *taskService) run(ctx context.Context, in wirecmd.ParticipantRequest) (out wirecmd.ToolOutcome, err error) {
	if _, err := d.note(ctx, in); err != nil {
		return out, err
	}
	d.began <- struct{}{}
	if d.tools != nil {
		select {
		case <-d.tools:
		case <-ctx.Done():
		}
	}
	err = json.Unmarshal(in.Data, &out.ToolRequest)
	out.Status, out.Result = "success", json.RawMessage(`"done"`)
	return out, err
}

// begins waits until n runs of tools have started.
func (d *taskService) begins(n int) {
	d.r.t.Helper()
	for range n {
		select {
		case <-d.began:
		case <-time.After(maxWait):
			require.Fail(d.r.t, "no tool is run")
		}
	}
}

// last returns the last request.
func (d *taskService) last() wirecmd.ParticipantRequest {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.asked[len(d.asked)-1]
}

func clientLog(tenant, client string) subject.Log {
	t, err := id.ParseTenant(tenant)
	if err != nil {
		panic(err)
	}
	return subject.Log{Tenant: t, Kind: id.KindInbox, Entity: id.EntityFromExternal(client)}
}

func taskLog(tenant, task string) subject.Log {
	l := clientLog(tenant, task)
	l.Kind = id.KindTask
	return l
}

// writeInbox writes messages into a client's log.
func (s *swarm) writeInbox(l subject.Log, texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		data, err := json.Marshal(text)
		require.NoError(s.t, err)
		require.NoError(s.t, s.append(l, unique(), event.InboxMessagedData{MessageID: unique(), SenderID: "x", TargetID: l.Entity.String(), Data: data}))
	}
}

// aspFrame is a frame of the protocol.
type aspFrame struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	Seq       uint64 `json:"seq"`
	Content   struct {
		ClientID    string          `json:"clientId"`
		ResumeToken string          `json:"resumeToken"`
		AgentID     string          `json:"agentId"`
		ServiceID   string          `json:"serviceId"`
		TaskID      string          `json:"taskId"`
		Status      string          `json:"status"`
		Code        string          `json:"code"`
		Error       string          `json:"error"`
		Resumed     bool            `json:"resumed"`
		Data        json.RawMessage `json:"data"`
		Params      json.RawMessage `json:"params"`
		Result      json.RawMessage `json:"result"`
		Next        string          `json:"next"`
		Agents      []struct {
			Name string `json:"name"`
		} `json:"agents"`
		Clients []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"clients"`
	} `json:"content"`
}

// join opens a socket of a participant and reads its welcome.
func (s *swarm) join(path, query string, header ...string) (*client, aspFrame) {
	s.t.Helper()
	s.path = path
	c := s.dial(query, header...)
	want := "orchestrator.welcome"
	if path == pathClient {
		want = "orchestrator.client.welcome"
	}
	return c, c.expectASP(want)
}

// agent opens the socket of an agent and registers it.
func (s *swarm) agent(agentID, name string, header ...string) *client {
	s.t.Helper()
	c, _ := s.join(pathAgent, "", header...)
	c.sendASP("agent.register", "reg", map[string]any{"id": agentID, "name": name, "capabilities": []string{"read"}})
	require.Equal(s.t, agentID, c.expectASP("agent.registered").Content.AgentID)
	return c
}

// service opens the socket of a replica of a service and registers it.
func (s *swarm) service(serviceID string, header ...string) *client {
	s.t.Helper()
	c, _ := s.join(pathService, "", header...)
	c.sendASP("service.register", "reg", map[string]any{"id": serviceID, "name": serviceID, "tools": []map[string]any{{"id": "add"}}})
	require.Equal(s.t, serviceID, c.expectASP("service.registered").Content.ServiceID)
	return c
}

// sendASP sends a frame.
func (c *client) sendASP(kind, frameID string, content any) {
	c.t.Helper()
	m := map[string]any{"type": kind, "content": content}
	if frameID != "" {
		m["id"] = frameID
	}
	b, err := json.Marshal(m)
	require.NoError(c.t, err)
	c.write(frame(fin|opText, b))
}

// expectASP returns the next frame, which has to be of the type. It skips pings: on a busy
// machine a pause is long enough for one.
func (c *client) expectASP(kind string) aspFrame {
	c.t.Helper()
	for {
		b, err := c.text()
		require.NoError(c.t, err, "instead of %s", kind)
		var h aspFrame
		require.NoError(c.t, json.Unmarshal(b, &h), "%s", b)
		if h.Type == "ping" && kind != "ping" {
			continue
		}
		require.Equal(c.t, kind, h.Type, "%s", b)
		return h
	}
}

// expectError reads the error that answers a frame.
func (c *client) expectError(frameID string, code fault.Code) {
	c.t.Helper()
	h := c.expectASP("error")
	require.Equal(c.t, string(code), h.Content.Code, "%+v", h)
	require.Equal(c.t, frameID, h.RequestID)
}

// unanswered requires that the gateway has sent no answer to the frames so far.
func (c *client) unanswered() {
	c.t.Helper()
	c.sendASP("is.there.anything", "probe", map[string]any{}) // a ping is answered before what waits
	c.expectError("probe", fault.UnknownType)
}

// cut resets the connection without a close frame.
func (c *client) cut() {
	c.t.Helper()
	if tc, ok := c.Conn.(*net.TCPConn); ok {
		require.NoError(c.t, tc.SetLinger(0))
	}
	require.NoError(c.t, c.Conn.Close())
}

// listed returns the entries of a participant in the directory, the newest last.
func (s *swarm) listed(kind, participantID string) []wirecmd.Participant {
	s.t.Helper()
	var out []wirecmd.Participant
	for _, m := range s.dir.All(wirecmd.ParticipantWhat(kind)) {
		var p wirecmd.Participant
		require.NoError(s.t, json.Unmarshal(m.Data, &p))
		require.Equal(s.t, p.Connection, m.Instance.String())
		require.Equal(s.t, p.Since, m.Started)
		if p.ID == participantID {
			out = append(out, p)
		}
	}
	return out
}

// until waits until the entries of a participant in the directory meet a condition.
func (s *swarm) until(kind, participantID, what string, f func([]wirecmd.Participant) bool) (all []wirecmd.Participant) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	err := s.dir.Wait(ctx, func(*directory.Directory) bool {
		all = s.listed(kind, participantID)
		return f(all)
	})
	require.NoError(s.t, err, "%s: %+v", what, all)
	return all
}

// onlyEntry waits until a participant has exactly one entry, and that is online.
func (s *swarm) onlyEntry(kind, participantID string) wirecmd.Participant {
	s.t.Helper()
	return s.until(kind, participantID, "one entry, online", func(all []wirecmd.Participant) bool { return len(all) == 1 && all[0].Online })[0]
}

// deliver sends an event to a connection and returns the answer of its gateway.
func (s *swarm) deliver(to wirecmd.Participant, about subject.Log, data event.Data) string {
	s.t.Helper()
	e, err := event.New(about, unique(), "test", time.Now(), data)
	require.NoError(s.t, err)
	b, err := json.Marshal(e)
	require.NoError(s.t, err)
	gw, connection, err := subject.ParseReplyTo(to.Gateway + "." + to.Connection)
	require.NoError(s.t, err)
	m, err := s.conn.NATS().Request(subject.Direct(gw, connection), b, maxWait)
	require.NoError(s.t, err)
	return string(m.Data)
}

// caller is the inbox of a caller of a provider's tool.
type caller struct {
	t   testing.TB
	sub *nats.Subscription
}

func (s *swarm) caller() caller {
	s.t.Helper()
	sub, err := s.conn.NATS().SubscribeSync(s.conn.NATS().NewInbox())
	require.NoError(s.t, err)
	require.NoError(s.t, s.conn.NATS().Flush())
	return caller{s.t, sub}
}

func (c caller) request(callID string) event.CallRequestedData {
	return event.CallRequestedData{CallID: callID, ServiceID: "s", Tool: "add", Arguments: json.RawMessage(`{"a":1}`), Inbox: c.sub.Subject}
}

// nextNews returns the next report to the caller.
func (c caller) nextNews() wirecmd.CallNews {
	c.t.Helper()
	m, err := c.sub.NextMsg(maxWait)
	require.NoError(c.t, err)
	var news wirecmd.CallNews
	require.NoError(c.t, json.Unmarshal(m.Data, &news))
	return news
}
