package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/quota"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/agent"
	"github.com/waggle-dev/waggle/services/agent/model"
	"github.com/waggle-dev/waggle/services/agent/model/openai"
	"github.com/waggle-dev/waggle/services/agent/model/scripted"
	"github.com/waggle-dev/waggle/services/manager"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/session"
	"github.com/waggle-dev/waggle/services/tools"
)

// patience bounds every wait.
const patience = 60 * time.Second

// rig is everything between a command and its events, all of it real: a NATS
// server, the session and pipeline services, the tool service with an MCP server of the test's
// own, and workers whose model is behind HTTP.
type rig struct {
	t    *testing.T
	ctx  context.Context
	conn *bus.Conn
	log  *eventlog.Store
	dir  *directory.Directory
	send *command.Sender
	llm  *scripted.Server
	ref  subject.Log

	pays    atomic.Int32       // how often the payment tool ran
	paying  chan struct{}      // one for each call that is inside the payment tool
	release chan struct{}      // closed or fed to let it answer
	team    *team              // of a member's rig
	daily   *quota.Daily       // of the workers that are started from now on
	refused chan quota.Refusal // what was refused by it
	n       int
}

func newRig(t *testing.T, script scripted.Script) *rig {
	t.Helper()
	return newRigWith(t, script, pipeline.Config{Backoff: time.Millisecond, OnBusy: event.OnBusyEnqueue})
}

func newRigWith(t *testing.T, script scripted.Script, rules pipeline.Config) *rig {
	t.Helper()
	t.Parallel() // tests mostly wait
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	r := &rig{
		t: t, ctx: ctx, conn: bustest.Single(t), paying: make(chan struct{}, 64), release: make(chan struct{}, 64),
		ref: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")},
	}
	var err error
	r.log = r.store(r.conn)
	r.dir, err = directory.Open(ctx, r.conn)
	require.NoError(t, err)
	t.Cleanup(r.dir.Close)
	r.send = command.NewSender(r.conn)
	r.llm, err = scripted.Start("127.0.0.1:0", script)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.llm.Close() })
	r.startTools()
	deps := manager.Deps{
		Conn: r.conn, Log: r.log, Commands: r.send, Directory: r.dir, Instance: id.MustName("one"), Logger: zerolog.Nop(),
	}
	s, err := session.New(session.Config{}, deps)
	require.NoError(t, err)
	require.NoError(t, s.Start(ctx))
	t.Cleanup(s.Stop)
	p, err := pipeline.New(rules, deps)
	require.NoError(t, err)
	require.NoError(t, p.Start(ctx))
	t.Cleanup(p.Stop)
	r.command(cmd.Open, "open", cmd.OpenSession{Dialect: "orbit"})
	r.exists()
	return r
}

// exists waits for the log: the service of runs, which is another than that of sessions,
// refuses messages to sessions that do not exist.
func (r *rig) exists() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	for _, err := range r.log.Tail(ctx, r.ref, eventlog.Cursor{}) {
		require.NoError(r.t, err, "waiting for the session")
		return
	}
	require.Fail(r.t, "the session never came to be")
}

func (r *rig) store(c *bus.Conn) *eventlog.Store {
	s, err := eventlog.New(c, eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(r.t, err)
	r.t.Cleanup(s.Close)
	return s
}

type payment struct {
	Amount int `json:"amount"`
}

// startTools starts the tool service with the workspace and an MCP server whose
// one tool may not be repeated.
func (r *rig) startTools() {
	bank := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	mcp.AddTool(bank, &mcp.Tool{Name: "pay", Description: "pays once for every call"},
		func(ctx context.Context, _ *mcp.CallToolRequest, in payment) (*mcp.CallToolResult, any, error) {
			r.pays.Add(1)
			r.paying <- struct{}{}
			select {
			case <-r.release:
			case <-ctx.Done():
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("paid ", in.Amount)}}}, nil, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return bank }, nil))
	r.t.Cleanup(web.Close)
	dir := r.t.TempDir()
	require.NoError(r.t, os.WriteFile(filepath.Join(dir, "notes.md"), []byte("buy milk"), 0o600))
	s, err := tools.New(tools.Config{
		Workspace: dir, Builtin: true, Servers: []tools.ServerConfig{{Name: "bank", URL: web.URL}},
	}, tools.Deps{Conn: r.conn, Directory: r.dir, Logger: zerolog.Nop()})
	require.NoError(r.t, err)
	require.NoError(r.t, s.Start(r.ctx))
	r.t.Cleanup(s.Stop)
	require.Eventually(r.t, func() bool {
		list, err := tools.NewClient(r.conn).List(r.ctx, id.DefaultTenant)
		return err == nil && len(list) == 5
	}, patience, 20*time.Millisecond, "the tools are offered")
}

// worker starts a worker on a connection of its own, so that it can be cut off.
func (r *rig) worker(name string, mod func(*agent.Config)) (*agent.Service, *bus.Conn) {
	r.t.Helper()
	return r.workerOf(name, r.openai(), mod)
}

// openai is the model behind HTTP.
func (r *rig) openai() model.Model {
	r.t.Helper()
	m, err := openai.New("x", model.Env{OpenAIBaseURL: r.llm.OpenAIBaseURL(), Logger: zerolog.Nop()})
	require.NoError(r.t, err)
	return m
}

// workerOf starts a worker with a model of the test's choice.
func (r *rig) workerOf(name string, m model.Model, mod func(*agent.Config)) (*agent.Service, *bus.Conn) {
	r.t.Helper()
	r.t.Cleanup(func() { _ = m.Close() })
	c := bustest.Dial(r.t, r.conn.NATS().ConnectedUrl())
	cfg := agent.Config{AckWait: 2 * time.Second}
	if mod != nil {
		mod(&cfg)
	}
	s, err := agent.New(cfg, agent.Deps{
		Conn: c, Log: r.store(c), Commands: command.NewSender(c), Directory: r.dir,
		Tools: tools.NewClient(c), Model: m, Instance: id.MustName(name), Logger: zerolog.New(zerolog.NewTestWriter(r.t)), Quota: r.daily,
	})
	require.NoError(r.t, err)
	require.NoError(r.t, s.Start(r.ctx))
	r.t.Cleanup(s.Stop)
	return s, c
}

func (r *rig) command(verb id.Name, commandID string, data any) {
	r.t.Helper()
	raw, err := json.Marshal(data)
	require.NoError(r.t, err)
	service := cmd.Pipeline
	switch {
	case r.ref.Kind == id.KindAgent:
		service = cmd.Member
	case verb == cmd.Open:
		service = cmd.Session
	}
	require.NoError(r.t, r.send.Send(r.ctx, cmd.Command{
		ID: commandID, Service: service, Verb: verb, Tenant: r.ref.Tenant, Key: r.ref.Entity, Time: time.Now(), Data: raw,
	}))
}

// ask sends a message and returns the id of its run.
func (r *rig) ask(text string) string {
	r.t.Helper()
	r.n++
	commandID := fmt.Sprint("msg-", r.n)
	r.command(cmd.Message, commandID, cmd.UserMessage{Content: text})
	return runID(commandID)
}

// until reads the log from its beginning until an event of the type for the run is
// there, and returns everything so far.
func (r *rig) until(run string, types ...event.Type) []event.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	var out []event.Event
	seq := uint64(0)
	for e, err := range r.log.Tail(ctx, r.ref, eventlog.Cursor{}) {
		require.NoError(r.t, err, "waiting for %v; so far %v", types, typesOf(out))
		out = append(out, e.Event)
		first := e.Sequence
		if e.From > 0 { // consecutive deltas, merged for a reader that lags
			first = e.From
		}
		require.Equal(r.t, seq+1, first, "seq is dense")
		seq = e.Sequence
		for _, t := range types {
			if e.Type == t && runOf(r.t, e.Event) == run {
				return out
			}
		}
	}
	require.Fail(r.t, "the log ended", "waiting for %v; so far %v", types, typesOf(out))
	return nil
}

// all returns what is in the log now.
func (r *rig) all() (out []event.Event) {
	r.t.Helper()
	require.NoError(r.t, r.log.Read(r.ctx, r.ref, eventlog.Cursor{}, func(e *eventlog.Entry) error {
		out = append(out, e.Event)
		return nil
	}))
	return out
}

func runOf(t *testing.T, e event.Event) string {
	t.Helper()
	var d struct {
		RunID string `json:"run_id"`
	}
	require.NoError(t, e.Decode(&d))
	return d.RunID
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

func last[T event.Data](t *testing.T, events []event.Event) T {
	t.Helper()
	d, err := event.As[T](events[len(events)-1])
	require.NoError(t, err)
	return d
}
