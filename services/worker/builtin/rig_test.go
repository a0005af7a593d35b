package builtin_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/waggle-dev/waggle/services/tools/remote"
	"github.com/waggle-dev/waggle/services/tools/service"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/rpc"
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
	"github.com/waggle-dev/waggle/services/task"
	"github.com/waggle-dev/waggle/services/worker"
	"github.com/waggle-dev/waggle/services/worker/builtin"
)

// maxWait bounds every wait.
const maxWait = 60 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

// rig is everything that a task of the built-in agent needs, all of it real but the
// model, which is scripted behind HTTP.
type rig struct {
	*servicetest.Rig
	llm *scripted.Server
}

func newRig(t *testing.T, script scripted.Script) *rig {
	t.Helper()
	r := &rig{Rig: servicetest.New(t, bustest.Single(t), maxWait)}
	var err error
	r.llm, err = scripted.Start("127.0.0.1:0", script)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.llm.Close() })
	r.services()
	return r
}

func (r *rig) services() {
	r.T.Helper()
	deps := r.Deps("one")
	box, err := service.New(service.Config{Workspace: r.T.TempDir(), Builtin: true}, service.Deps{Conn: r.Conn, Directory: r.Dir, Logger: zerolog.Nop()})
	r.Run(box, err)
	s, err := session.New(session.Config{}, deps)
	r.Run(s, err)
	p, err := pipeline.New(pipeline.Config{}, deps)
	r.Run(p, err)
	k, err := task.New(task.Config{Confirm: maxWait}, deps, remote.NewClient(r.Conn))
	r.Run(k, err)
	m, err := openai.New(openai.Standard, "x", model.Env{}.With("openai", model.Access{BaseURL: r.llm.OpenAIBaseURL()}))
	require.NoError(r.T, err)
	r.T.Cleanup(func() { _ = m.Close() })
	w, err := worker.New(worker.Config{}, worker.Deps{
		Conn: r.Conn, Log: r.Log, Commands: r.Send, Directory: r.Dir, Tools: remote.NewClient(r.Conn), Model: m,
		Instance: id.MustName("one"), Logger: zerolog.Nop(), Signatures: signature.Unchecked(),
	})
	r.Run(w, err)
}

// assistant starts an instance and waits until the task service sees it.
func (r *rig) assistant(cfg builtin.Config) *builtin.Agent {
	r.T.Helper()
	before := len(r.agents(id.DefaultTenant))
	a, err := builtin.New(cfg, builtin.Deps{
		Conn: r.Conn, Log: r.Log, Commands: r.Send, Directory: r.Dir, Logger: zerolog.New(zerolog.NewTestWriter(r.T)),
	})
	r.Run(a, err)
	require.Eventually(r.T, func() bool { return len(r.agents(id.DefaultTenant)) > before }, maxWait, 10*time.Millisecond)
	return a
}

func (r *rig) ask(t id.Tenant, verb id.Name, data, out any) {
	r.T.Helper()
	require.NoError(r.T, rpc.Call(r.Ctx, r.Conn, cmd.Task, verb, cmd.ParticipantRequest{Tenant: t, Data: servicetest.JSON(r.T, data)}, out))
}

func (r *rig) agents(t id.Tenant) []cmd.Participant {
	r.T.Helper()
	var out cmd.ParticipantList
	r.ask(t, cmd.ListAgents, cmd.ParticipantFilter{}, &out)
	return out.Participants
}

// submit gives a task to the assistant and returns its log.
func (r *rig) submit(t id.Tenant, data string) subject.Log {
	r.T.Helper()
	var v cmd.TaskView
	r.ask(t, cmd.Submit, cmd.NewTask{AgentName: "assistant", Data: json.RawMessage(data)}, &v)
	return subject.Log{Tenant: t, Kind: id.KindTask, Entity: id.EntityFromExternal(v.TaskID)}
}

// command sends a command about the task.
func (r *rig) command(log subject.Log, verb id.Name, commandID string, data any) {
	r.T.Helper()
	r.Command(cmd.Command{ID: commandID, Service: cmd.Task, Verb: verb, Tenant: log.Tenant, Key: log.Entity}, data)
}

// end waits for the end of a task.
func (r *rig) end(log subject.Log) event.TaskFinishedData {
	r.T.Helper()
	events := r.Until(log, event.TaskFinished, 1)
	d, err := event.As[event.TaskFinishedData](events[len(events)-1])
	require.NoError(r.T, err)
	return d
}
