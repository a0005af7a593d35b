package worker_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/services/tools"
	mcpservers "github.com/waggle-dev/waggle/services/tools/mcp"
	"github.com/waggle-dev/waggle/services/tools/remote"
	"github.com/waggle-dev/waggle/services/tools/service"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/signature"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/openai"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/session"
	"github.com/waggle-dev/waggle/services/worker"
)

// maxWait bounds every wait.
const maxWait = 60 * time.Second

// brief is a limit of work that has to begin before it is over, also on a machine that pauses for three seconds.
const brief = 5 * time.Second

// rig is everything between a command and its events, all of it real: a NATS
// server, the session and pipeline services, the tool service with an MCP server of the test's
// own, and workers whose model is behind HTTP.
type rig struct {
	*servicetest.Rig
	llm *scripted.Server
	ref subject.Log

	workspace string // the folder of the files

	pays    atomic.Int32       // how often the payment tool ran
	paying  chan struct{}      // one for each call that is inside the payment tool
	release chan struct{}      // closed or fed to let it answer
	team    *team              // of a member's rig
	daily   *quota.Daily       // of the workers that are started from now on
	refused chan quota.Refusal // its refusals
	n       int

	signatures *signature.Verifier // of workers; nil: none are checked
	bank       *mcp.Server         // of the payment tool
}

func newRig(t *testing.T, script scripted.Script) *rig {
	t.Helper()
	return newRigWith(t, script, pipeline.Config{Backoff: time.Millisecond, OnBusy: event.OnBusyEnqueue})
}

func newRigWith(t *testing.T, script scripted.Script, rules pipeline.Config) *rig {
	t.Helper()
	return newRigUnder(t, script, rules, tools.Rules{Approval: event.ApprovalNever})
}

// newRigUnder is newRigWith with the operator's rules for the tools of the bank.
func newRigUnder(t *testing.T, script scripted.Script, rules pipeline.Config, bank tools.Rules) *rig {
	t.Helper()
	t.Parallel() // tests mostly wait
	r := &rig{
		Rig: servicetest.Within(t, bustest.Single(t), maxWait, 4*maxWait), paying: make(chan struct{}, 64), release: make(chan struct{}, 64),
		ref: subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")},
	}
	var err error
	r.llm, err = scripted.Start("127.0.0.1:0", script)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.llm.Close() })
	r.startTools(bank)
	s, err := session.New(session.Config{}, r.Deps("one"))
	r.Run(s, err)
	p, err := pipeline.New(rules, r.Deps("one"))
	r.Run(p, err)
	r.command(cmd.Open, "open", cmd.OpenSession{Dialect: "orbit"})
	// The service of runs, which is another than that of sessions, refuses messages to
	// sessions that do not exist.
	r.Until(r.ref, event.SessionCreated, 1)
	return r
}

type payment struct {
	Amount int `json:"amount"`
}

// startTools starts the tool service with the workspace and an MCP server whose
// one tool may not be repeated.
func (r *rig) startTools(rules tools.Rules) {
	r.bank = mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	r.offerPay("pays once for every call")
	bank := r.bank
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return bank }, nil))
	r.T.Cleanup(web.Close)
	dir := r.T.TempDir()
	r.workspace = dir
	require.NoError(r.T, os.WriteFile(filepath.Join(dir, "notes.md"), []byte("buy milk"), 0o600))
	s, err := service.New(service.Config{
		Workspace: dir, Builtin: true, Servers: []mcpservers.Config{{Name: "bank", URL: web.URL, Rules: rules}},
	}, service.Deps{Conn: r.Conn, Directory: r.Dir, Logger: zerolog.Nop(), Signatures: signature.Unchecked()})
	r.Run(s, err)
	require.Eventually(r.T, func() bool { return len(r.offers()) == 5 }, maxWait, 20*time.Millisecond, "the tools are offered")
}

// offers returns the tools that the tool service offers.
func (r *rig) offers() []tools.Tool {
	list, err := remote.NewClient(r.Conn).List(r.Ctx, id.DefaultTenant)
	if err != nil {
		return nil
	}
	return list
}

// offerPay has the bank offer the payment tool with the description, in place of the one before.
func (r *rig) offerPay(description string) {
	mcp.AddTool(r.bank, &mcp.Tool{Name: "pay", Description: description},
		func(ctx context.Context, _ *mcp.CallToolRequest, in payment) (*mcp.CallToolResult, any, error) {
			r.pays.Add(1)
			r.paying <- struct{}{}
			select {
			case <-r.release:
			case <-ctx.Done():
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint("paid ", in.Amount)}}}, nil, nil
		})
}

// worker starts a worker on a connection of its own, so that it can be cut off.
func (r *rig) worker(name string, mod func(*worker.Config)) (*worker.Service, *bus.Conn) {
	r.T.Helper()
	return r.workerOf(name, r.openai(), mod)
}

// openai is the model behind HTTP.
func (r *rig) openai() model.Model {
	r.T.Helper()
	m, err := openai.New(openai.Standard, "x", model.Env{}.With("openai", model.Access{BaseURL: r.llm.OpenAIBaseURL()}))
	require.NoError(r.T, err)
	return m
}

// hasty workers take over soon what another one seems to have left, and bear a machine that pauses for three seconds.
func hasty(c *worker.Config) { c.AckWait = 6 * time.Second }

// workerOf starts a worker with a model of the test's choice.
func (r *rig) workerOf(name string, m model.Model, mod func(*worker.Config)) (*worker.Service, *bus.Conn) {
	r.T.Helper()
	r.T.Cleanup(func() { _ = m.Close() })
	c := bustest.Dial(r.T, r.Conn.NATS().ConnectedUrl())
	cfg := worker.Config{AckWait: 10 * time.Second} // a worker of a busy machine is not taken for dead
	if mod != nil {
		mod(&cfg)
	}
	s, err := worker.New(cfg, worker.Deps{
		Conn: c, Log: r.StoreOn(c), Commands: command.NewSender(c), Directory: r.Dir,
		Tools: remote.NewClient(c), Model: m, Instance: id.MustName(name), Logger: zerolog.New(zerolog.NewTestWriter(r.T)), Quota: r.daily,
		Signatures: cmp.Or(r.signatures, signature.Unchecked()), Audit: r.Audit,
	})
	r.Run(s, err)
	return s, c
}

func (r *rig) command(verb id.Name, commandID string, data any) {
	r.T.Helper()
	service := cmd.Pipeline
	switch {
	case r.ref.Kind == id.KindMember:
		service = cmd.Member
	case verb == cmd.Open:
		service = cmd.Session
	}
	r.Command(cmd.Command{
		ID: commandID, Service: service, Verb: verb, Tenant: r.ref.Tenant, Key: r.ref.Entity, Time: time.Now(),
	}, data)
}

// ask sends a message and returns the id of its run.
func (r *rig) ask(text string) string {
	r.T.Helper()
	r.n++
	commandID := fmt.Sprint("msg-", r.n)
	r.command(cmd.SendMessage, commandID, cmd.UserMessage{Content: text})
	return runID(commandID)
}

// until reads the log from its beginning until an event of the type for the run is
// there, and returns everything so far.
func (r *rig) until(run string, types ...event.Type) []event.Event {
	r.T.Helper()
	seq := uint64(0)
	return servicetest.Events(r.Wait(r.ref, fmt.Sprintf("%v of %s", types, run), func(all []*eventlog.Entry) bool {
		if len(all) == 0 {
			return false
		}
		e := all[len(all)-1]
		first := e.Sequence
		if e.From > 0 { // consecutive deltas, merged for a reader that lags
			first = e.From
		}
		require.Equal(r.T, seq+1, first, "seq is dense")
		seq = e.Sequence
		return slices.Contains(types, e.Type) && runOf(r.T, e.Event) == run
	}))
}

func runOf(t testing.TB, e event.Event) string {
	t.Helper()
	var d struct {
		RunID string `json:"run_id"`
	}
	require.NoError(t, e.Decode(&d))
	return d.RunID
}

func last[T event.Data](t testing.TB, events []event.Event) T {
	t.Helper()
	d, err := event.As[T](events[len(events)-1])
	require.NoError(t, err)
	return d
}
