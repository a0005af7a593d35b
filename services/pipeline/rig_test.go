package pipeline_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/pipeline"
)

// maxWait bounds every wait.
const maxWait = 60 * time.Second

var log = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}

func TestMain(m *testing.M) {
	bustest.Waiting()
	goleak.VerifyTestMain(m, bustest.Leftovers()...)
}

// rig is a NATS server with replicas of the service, and workers played by the test.
type rig struct {
	*servicetest.Rig
	n int
}

// everyone may do everything: each command of the rig has a principal of its own.
var everyone = access.Policy{Default: access.Settings{See: access.Tenant, Answer: access.Tenant}}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{Rig: servicetest.New(t, bustest.Single(t), maxWait)}
}

func (r *rig) service(name string, c pipeline.Config) *pipeline.Service {
	r.T.Helper()
	c.Access = everyone
	s, err := pipeline.New(c, r.Deps(name))
	require.NoError(r.T, err)
	return s
}

func (r *rig) start(name string, c pipeline.Config) *pipeline.Service {
	r.T.Helper()
	s := r.service(name, c)
	r.Run(s, nil)
	return s
}

// open begins a session's log, as the session service does.
func (r *rig) open(l subject.Log) {
	r.T.Helper()
	r.append(l, event.SessionCreatedData{Dialect: "myagent"})
}

// append writes an event as a worker does.
func (r *rig) append(l subject.Log, data event.Data) {
	r.T.Helper()
	r.n++
	eventID := fmt.Sprint("test.", r.n)
	w := r.Log.Writer(l, nil)
	require.NoError(r.T, w.Sync(r.Ctx))
	done := false
	require.NoError(r.T, w.Append(r.Ctx, func() ([]event.Event, error) {
		if done {
			return nil, nil
		}
		done = true
		e, err := event.New(l, eventID, "test", time.Now(), data)
		return []event.Event{e}, err
	}))
}

func (r *rig) command(l subject.Log, verb id.Name, commandID string, data any) {
	r.T.Helper()
	r.commandFrom(l, verb, commandID, data, "")
}

func (r *rig) commandFrom(l subject.Log, verb id.Name, commandID string, data any, replyTo string) {
	r.T.Helper()
	r.Command(cmd.Command{
		ID: commandID, Service: cmd.JobRef{Kind: l.Kind}.Manager(), Verb: verb, Tenant: l.Tenant, Key: l.Entity, Time: time.Now(),
		Principal: "p-" + commandID, ReplyTo: replyTo,
	}, data)
}

// fold returns the state of the log as it is.
func (r *rig) fold(l subject.Log) *conversation.State {
	r.T.Helper()
	var st conversation.State
	require.NoError(r.T, r.Log.Read(r.Ctx, l, eventlog.Cursor{}, func(e *eventlog.Entry) error { return st.Apply(e.Event) }))
	return &st
}

// work plays a worker for the next job: it claims it and says the text, or
// fails if the text is empty.
func (r *rig) work(l subject.Log, items <-chan cmd.JobRef, text string) cmd.JobRef {
	r.T.Helper()
	var ref cmd.JobRef
	select {
	case ref = <-items:
	case <-time.After(maxWait):
		require.Fail(r.T, "no job was sent")
	}
	u := r.fold(l).Job(ref.Job())
	require.NotNil(r.T, u, "the job is in the log before it is sent")
	r.append(l, event.JobStartedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1, Worker: "w", Part: u.Part})
	if text == "" {
		r.append(l, event.JobFailedData{
			RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1, Code: "MODEL_FAILED", Message: "broken", Retryable: true, Part: u.Part,
		})
	} else {
		r.append(l, event.MessageCompletedData{
			MessageID: ref.Job() + ".m", RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1,
			Role: event.RoleAssistant, Content: text, StopReason: "end", Part: u.Part,
		})
	}
	r.command(l, cmd.SettleJob, ref.Job()+".ended", ref)
	return ref
}

// items takes the jobs that the service sends to the workers.
func (r *rig) items() <-chan cmd.JobRef {
	r.T.Helper()
	out := make(chan cmd.JobRef, 100)
	w := command.NewWorkers(r.Conn, command.WorkersConfig{
		Service: cmd.Worker, Instance: id.MustName("tester"), Concurrency: 16, Logger: zerolog.Nop(),
	}, func(_ context.Context, c cmd.Command, _ command.Delivery) error {
		var ref cmd.JobRef
		if err := c.Decode(&ref); err != nil {
			return command.Permanent(err)
		}
		out <- ref
		return nil
	})
	r.Run(w, nil)
	return out
}
