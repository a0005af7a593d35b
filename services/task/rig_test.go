package task_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// maxWait bounds every wait.
const maxWait = 60 * time.Second

var (
	tenant  = id.DefaultTenant
	gateway = id.MustName("gw")
)

func TestMain(m *testing.M) {
	bustest.Waiting()
	goleak.VerifyTestMain(m, bustest.Leftovers()...)
}

// rig is a NATS server with replicas of the service. The test plays the gateway, the
// agents and the clients.
type rig struct {
	*servicetest.Rig
	box *box

	mu    sync.Mutex
	heard map[string]chan event.Event // by connection: what was said to it
	deaf  map[string]bool             // connections whose gateway confirms nothing

	handed map[string]bool // attempts that a connection has been told of
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		Rig: servicetest.Within(t, bustest.Single(t), maxWait, 4*maxWait), box: &box{}, heard: map[string]chan event.Event{}, deaf: map[string]bool{}, handed: map[string]bool{},
	}
	sub, err := r.Conn.NATS().Subscribe(subject.DirectFilter(gateway), r.confirm)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Unsubscribe()) })
	return r
}

// directTo returns the direct messages to a connection.
func (r *rig) directTo(connection string) chan event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heard[connection] == nil {
		r.heard[connection] = make(chan event.Event, 1000)
	}
	return r.heard[connection]
}

// confirm is the gateway: it confirms what it can queue.
func (r *rig) confirm(m *nats.Msg) {
	_, connection, err := subject.ParseDirect(m.Subject)
	if err != nil {
		return
	}
	r.mu.Lock()
	deaf := r.deaf[connection.String()]
	r.mu.Unlock()
	var e event.Event
	if deaf || json.Unmarshal(m.Data, &e) != nil || e.Sequence != 0 {
		if m.Reply != "" {
			_ = m.Respond([]byte("-"))
		}
		return
	}
	if r.news(connection.String(), e) {
		r.directTo(connection.String()) <- e
	}
	if m.Reply != "" {
		_ = m.Respond([]byte("+"))
	}
}

// news reports whether the agent hears the event for the first time. A service that was slow hands a task to a
// connection again, as agents expect: it is the same attempt.
func (r *rig) news(connection string, e event.Event) bool {
	if e.Type != event.TaskAssigned {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := connection + " " + e.Subject + " " + e.ID
	again := r.handed[key]
	r.handed[key] = true
	return !again
}

func (r *rig) setDeaf(connection string, deaf bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaf[connection] = deaf
}

// start starts a replica of the service.
func (r *rig) start(name string, cfg task.Config) *task.Service {
	r.T.Helper()
	cfg.Confirm = maxWait                                    // the test confirms, however slow the machine is
	cfg.Rules.Silence = cmp.Or(cfg.Rules.Silence, 4*maxWait) // and an agent that is back may take as long
	s, err := task.New(cfg, r.Deps(name), r.box)
	r.Run(s, err)
	return s
}

// agent is an agent on a connection that the test plays.
type agent struct {
	*rig
	participant cmd.Participant
	lease       *directory.Lease
	heard       chan event.Event
	n           int
}

// join lists a participant as its gateway does.
func (r *rig) join(p cmd.Participant) *agent {
	r.T.Helper()
	if p.Tenant.IsZero() {
		p.Tenant = tenant
	}
	if p.Kind == "" {
		p.Kind = cmd.ParticipantAgent
	}
	if p.Status == "" {
		p.Status = cmd.StatusActive
	}
	if p.Connection == "" {
		p.Connection = "c-" + p.ID
	}
	p.Online, p.Gateway, p.Since = true, gateway.String(), time.Now()
	lease, err := r.Dir.Join(r.Ctx, directory.Member{
		What: cmd.ParticipantWhat(p.Kind), Name: id.MustName(p.Connection), Instance: gateway, Data: servicetest.JSON(r.T, p),
	})
	require.NoError(r.T, err)
	return &agent{rig: r, participant: p, lease: lease, heard: r.directTo(p.Connection)}
}

// set changes what the directory has of the agent.
func (a *agent) set(change func(*cmd.Participant)) {
	a.T.Helper()
	change(&a.participant)
	require.NoError(a.T, a.lease.Set(servicetest.JSON(a.T, a.participant)))
	require.NoError(a.T, a.lease.Shown(a.Ctx))
}

func (a *agent) leave() {
	a.T.Helper()
	require.NoError(a.T, a.lease.Leave(a.Ctx))
}

// hears waits for the next thing that the agent is told, which has to be of the type.
func hears[T event.Data](a *agent) T {
	a.T.Helper()
	select {
	case e := <-a.heard:
		var want T
		require.Equal(a.T, want.EventType(), e.Type, "%s hears %s", a.participant.ID, e.Data)
		d, err := event.As[T](e)
		require.NoError(a.T, err)
		return d
	case <-time.After(maxWait):
		require.Fail(a.T, "nothing was said", "%s waits for %T", a.participant.ID, *new(T))
		panic("unreachable")
	}
}

// says sends a command about a task, as the agent's gateway does.
func (a *agent) says(taskID string, verb id.Name, data any) {
	a.T.Helper()
	a.n++
	a.command(taskID, verb, fmt.Sprintf("%s.%d", a.participant.ID, a.n), data, subject.ReplyTo(gateway, id.MustName(a.participant.Connection)))
}

// done ends a task with a result.
func (a *agent) done(taskID, result string) {
	a.T.Helper()
	a.says(taskID, cmd.FinishTask, cmd.TaskResult{TaskID: taskID, AgentID: a.participant.ID, Result: servicetest.JSON(a.T, result)})
}

func (r *rig) command(taskID string, verb id.Name, commandID string, data any, replyTo string) {
	r.T.Helper()
	r.Command(cmd.Command{
		ID: commandID, Service: cmd.Task, Verb: verb, Tenant: tenant, Key: id.EntityFromExternal(taskID), Time: time.Now(), ReplyTo: replyTo,
	}, data)
}

// ask asks the service as a gateway does for the client.
func (r *rig) ask(verb id.Name, client string, data, out any) error {
	r.T.Helper()
	return r.askIn(tenant, verb, client, data, out)
}

func (r *rig) askIn(t id.Tenant, verb id.Name, client string, data, out any) error {
	r.T.Helper()
	return rpc.Call(r.Ctx, r.Conn, cmd.Task, verb, cmd.ParticipantRequest{
		Tenant: t, Kind: cmd.ParticipantClient, ID: client, Name: "name of " + client, ReplyTo: subject.ReplyTo(gateway, id.MustName("x")),
		Data: servicetest.JSON(r.T, data),
	}, out)
}

// client opens an inbox.
func (r *rig) client() cmd.OpenClientReply {
	r.T.Helper()
	var out cmd.OpenClientReply
	require.NoError(r.T, rpc.Call(r.Ctx, r.Conn, cmd.Task, cmd.OpenClient, cmd.OpenClientRequest{Tenant: tenant, Principal: "p"}, &out))
	return out
}

// submit gives a task to the service.
func (r *rig) submit(client string, n cmd.NewTask) string {
	r.T.Helper()
	var v cmd.TaskView
	if n.Data == nil {
		n.Data = json.RawMessage(`{"do":"it"}`)
	}
	require.NoError(r.T, r.ask(cmd.Submit, client, n, &v))
	require.NotEmpty(r.T, v.TaskID)
	require.Equal(r.T, "created", v.Status)
	return v.TaskID
}

func logOf(kind id.Kind, entity string) subject.Log {
	return subject.Log{Tenant: tenant, Kind: kind, Entity: id.EntityFromExternal(entity)}
}

// types lists the types of events, without the reports that a task was delivered.
func types(events []event.Event) string {
	var out []string
	for _, e := range events {
		if e.Type == event.TaskReported && strings.Contains(string(e.Data), `"delivered"`) {
			continue
		}
		out = append(out, string(e.Type))
	}
	return strings.Join(out, " ")
}

func isFault(t *testing.T, err error, code fault.Code) {
	t.Helper()
	require.ErrorIs(t, err, fault.New(code))
}

// box is a toolbox with two servers whose tools the test plays.
type box struct {
	mu    sync.Mutex
	calls []tools.Call
	play  func(ctx context.Context, c tools.Call, told func(tools.Notification)) (tools.Result, error)
}

func (b *box) List(context.Context, id.Tenant) ([]tools.Tool, error) { return nil, nil }

func (b *box) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	return b.CallWith(ctx, c, func(tools.Notification) {})
}

func (b *box) CallWith(ctx context.Context, c tools.Call, told func(tools.Notification)) (tools.Result, error) {
	b.mu.Lock()
	b.calls = append(b.calls, c)
	play := b.play
	b.mu.Unlock()
	return play(ctx, c, told)
}

func (b *box) Servers(context.Context, id.Tenant, string) ([]tools.Server, error) {
	return []tools.Server{
		{Kind: tools.KindMCP, ID: "files", Name: "files", Type: "stdio", Status: cmd.StatusActive, Capabilities: []string{"read"}},
		{Kind: tools.KindMCP, ID: "web", Name: "web", Type: "http", Status: cmd.StatusInactive, Capabilities: []string{"get"}},
	}, nil
}

func (b *box) ToolsOf(_ context.Context, t id.Tenant, kind, server string) (tools.Server, []tools.Tool, error) {
	if t != tenant || kind != tools.KindService || server != "shop" {
		return tools.Server{}, nil, fault.New(fault.ServiceNotFound)
	}
	return tools.Server{Kind: kind, ID: server, Name: "The shop"}, []tools.Tool{
		{Name: "shop_price", Own: "price", Server: "shop", InputSchema: json.RawMessage(`{"type":"object"}`), Idempotent: true},
		{Name: "shop_buy", Own: "buy", Server: "shop", InputSchema: json.RawMessage(`{"type":"object"}`)},
	}, nil
}

func (b *box) made() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}
