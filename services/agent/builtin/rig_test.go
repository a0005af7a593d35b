package builtin_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/agent"
	"github.com/waggle-dev/waggle/services/agent/builtin"
	"github.com/waggle-dev/waggle/services/agent/model"
	"github.com/waggle-dev/waggle/services/agent/model/openai"
	"github.com/waggle-dev/waggle/services/agent/model/scripted"
	"github.com/waggle-dev/waggle/services/manager"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/session"
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/tools"
)

// patience bounds every wait.
const patience = 60 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

// rig is everything that a task of the built-in agent needs, all of it real but the
// model, which is scripted behind HTTP.
type rig struct {
	t    *testing.T
	ctx  context.Context
	conn *bus.Conn
	log  *eventlog.Store
	dir  *directory.Directory
	send *command.Sender
	llm  *scripted.Server
}

func newRig(t *testing.T, script scripted.Script) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, conn: bustest.Single(t)}
	var err error
	r.log, err = eventlog.New(r.conn, eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(r.log.Close)
	r.dir, err = directory.Open(ctx, r.conn)
	require.NoError(t, err)
	t.Cleanup(r.dir.Close)
	r.send = command.NewSender(r.conn)
	r.llm, err = scripted.Start("127.0.0.1:0", script)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.llm.Close() })
	r.services()
	return r
}

// component is what lifecycle.Component is to a test.
type component interface {
	Start(context.Context) error
	Stop()
}

func (r *rig) run(c component, err error) {
	r.t.Helper()
	require.NoError(r.t, err)
	require.NoError(r.t, c.Start(r.ctx))
	r.t.Cleanup(c.Stop)
}

func (r *rig) services() {
	r.t.Helper()
	deps := manager.Deps{
		Conn: r.conn, Log: r.log, Commands: r.send, Directory: r.dir, Instance: id.MustName("one"), Logger: zerolog.Nop(),
	}
	box, err := tools.New(tools.Config{Workspace: r.t.TempDir(), Builtin: true}, tools.Deps{Conn: r.conn, Directory: r.dir, Logger: zerolog.Nop()})
	r.run(box, err)
	s, err := session.New(session.Config{}, deps)
	r.run(s, err)
	p, err := pipeline.New(pipeline.Config{}, deps)
	r.run(p, err)
	k, err := task.New(task.Config{}, deps, tools.NewClient(r.conn))
	r.run(k, err)
	m, err := openai.New("x", model.Env{OpenAIBaseURL: r.llm.OpenAIBaseURL(), Logger: zerolog.Nop()})
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = m.Close() })
	w, err := agent.New(agent.Config{}, agent.Deps{
		Conn: r.conn, Log: r.log, Commands: r.send, Directory: r.dir, Tools: tools.NewClient(r.conn), Model: m,
		Instance: id.MustName("one"), Logger: zerolog.Nop(),
	})
	r.run(w, err)
}

// assistant starts an instance and waits until the task service sees it.
func (r *rig) assistant(cfg builtin.Config) *builtin.Agent {
	r.t.Helper()
	before := len(r.agents(id.DefaultTenant))
	a, err := builtin.New(cfg, builtin.Deps{
		Conn: r.conn, Log: r.log, Commands: r.send, Directory: r.dir, Logger: zerolog.New(zerolog.NewTestWriter(r.t)),
	})
	r.run(a, err)
	require.Eventually(r.t, func() bool { return len(r.agents(id.DefaultTenant)) > before }, patience, 10*time.Millisecond)
	return a
}

func (r *rig) ask(t id.Tenant, verb id.Name, data, out any) {
	r.t.Helper()
	raw, err := json.Marshal(data)
	require.NoError(r.t, err)
	require.NoError(r.t, rpc.Call(r.ctx, r.conn, cmd.Task, verb, cmd.PeerRequest{Tenant: t, Data: raw}, out))
}

func (r *rig) agents(t id.Tenant) []cmd.Peer {
	r.t.Helper()
	var out cmd.PeerList
	r.ask(t, cmd.ListAgents, cmd.PeerFilter{}, &out)
	return out.Peers
}

// submit gives a task to the assistant and returns its log.
func (r *rig) submit(t id.Tenant, data string) subject.Log {
	r.t.Helper()
	var v cmd.TaskView
	r.ask(t, cmd.Submit, cmd.NewTask{AgentName: "assistant", Data: json.RawMessage(data)}, &v)
	return subject.Log{Tenant: t, Kind: id.KindTask, Entity: id.EntityFromExternal(v.TaskID)}
}

// command sends a command about the task.
func (r *rig) command(log subject.Log, verb id.Name, commandID string, data any) {
	r.t.Helper()
	raw, err := json.Marshal(data)
	require.NoError(r.t, err)
	require.NoError(r.t, r.send.Send(r.ctx, cmd.Command{
		ID: commandID, Service: cmd.Task, Verb: verb, Tenant: log.Tenant, Key: log.Entity, Data: raw,
	}))
}

// until reads a log until an event of the type is there and returns everything so far.
func (r *rig) until(log subject.Log, typ event.Type) []event.Event {
	r.t.Helper()
	return r.untilSo(log, string(typ), func(all []event.Event) bool { return all[len(all)-1].Type == typ })
}

// untilSo reads a log until what was read is what is waited for.
func (r *rig) untilSo(log subject.Log, what string, enough func([]event.Event) bool) []event.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	var out []event.Event
	for e, err := range r.log.Tail(ctx, log, eventlog.Cursor{}) {
		require.NoError(r.t, err, "waiting for %s in %s; so far %v", what, log, typesOf(out))
		if out = append(out, e.Event); enough(out) {
			return out
		}
	}
	require.Fail(r.t, "the log ended")
	return nil
}

// end waits for the end of a task.
func (r *rig) end(log subject.Log) event.TaskFinishedData {
	r.t.Helper()
	events := r.until(log, event.TaskFinished)
	d, err := event.As[event.TaskFinishedData](events[len(events)-1])
	require.NoError(r.t, err)
	return d
}

func typesOf(events []event.Event) []event.Type {
	out := make([]event.Type, 0, len(events))
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

func count(events []event.Event, typ event.Type) int {
	n := 0
	for _, e := range events {
		if e.Type == typ {
			n++
		}
	}
	return n
}
