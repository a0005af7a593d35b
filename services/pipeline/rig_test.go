package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/manager"
	"github.com/waggle-dev/waggle/services/pipeline"
)

// patience bounds every wait.
const patience = 60 * time.Second

var log = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.Leftovers()...) }

// rig is a NATS server with replicas of the service, and workers played by the test.
type rig struct {
	t    *testing.T
	ctx  context.Context
	conn *bus.Conn
	log  *eventlog.Store
	dir  *directory.Directory
	send *command.Sender
	n    int
}

func newRig(t *testing.T) *rig {
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
	return r
}

func (r *rig) service(name string, c pipeline.Config) *pipeline.Service {
	r.t.Helper()
	s, err := pipeline.New(c, manager.Deps{
		Conn: r.conn, Log: r.log, Commands: r.send, Directory: r.dir, Instance: id.MustName(name), Logger: zerolog.Nop(),
	})
	require.NoError(r.t, err)
	return s
}

func (r *rig) start(name string, c pipeline.Config) *pipeline.Service {
	r.t.Helper()
	s := r.service(name, c)
	require.NoError(r.t, s.Start(r.ctx))
	r.t.Cleanup(s.Stop)
	return s
}

// open begins a session's log, as the session service does.
func (r *rig) open(l subject.Log) {
	r.t.Helper()
	r.append(l, event.SessionCreatedData{Dialect: "myagent"})
}

// append writes an event as a worker does.
func (r *rig) append(l subject.Log, data event.Data) {
	r.t.Helper()
	r.n++
	eventID := fmt.Sprint("test.", r.n)
	w := r.log.Writer(l, nil)
	require.NoError(r.t, w.Sync(r.ctx))
	done := false
	require.NoError(r.t, w.Append(r.ctx, func() ([]event.Event, error) {
		if done {
			return nil, nil
		}
		done = true
		e, err := event.New(l, eventID, "test", time.Now(), data)
		return []event.Event{e}, err
	}))
}

func (r *rig) command(l subject.Log, verb id.Name, commandID string, data any) {
	r.t.Helper()
	r.commandFrom(l, verb, commandID, data, "")
}

func (r *rig) commandFrom(l subject.Log, verb id.Name, commandID string, data any, replyTo string) {
	r.t.Helper()
	raw, err := json.Marshal(data)
	require.NoError(r.t, err)
	require.NoError(r.t, r.send.Send(r.ctx, cmd.Command{
		ID: commandID, Service: cmd.WorkRef{Kind: l.Kind}.Manager(), Verb: verb, Tenant: l.Tenant, Key: l.Entity, Time: time.Now(), Data: raw,
		Principal: "p-" + commandID, ReplyTo: replyTo,
	}))
}

// until reads the log until the n-th event of the type is there.
func (r *rig) until(l subject.Log, typ event.Type, n int) []event.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	var out []event.Event
	for e, err := range r.log.Tail(ctx, l, eventlog.Cursor{}) {
		require.NoError(r.t, err, "waiting for %s; so far %v", typ, types(out))
		out = append(out, e.Event)
		if e.Type == typ {
			if n--; n == 0 {
				return out
			}
		}
	}
	require.Fail(r.t, "the log ended", "waiting for %s; so far %v", typ, types(out))
	return nil
}

func types(events []event.Event) []event.Type {
	out := make([]event.Type, 0, len(events))
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// fold returns the state of the log as it is.
func (r *rig) fold(l subject.Log) *conversation.State {
	r.t.Helper()
	var st conversation.State
	require.NoError(r.t, r.log.Read(r.ctx, l, eventlog.Cursor{}, func(e *eventlog.Entry) error { return st.Apply(e.Event) }))
	return &st
}

// work plays a worker for the next unit of work: it claims it and says the text, or
// fails if the text is empty.
func (r *rig) work(l subject.Log, items <-chan cmd.WorkRef, text string) cmd.WorkRef {
	r.t.Helper()
	var ref cmd.WorkRef
	select {
	case ref = <-items:
	case <-time.After(patience):
		require.Fail(r.t, "no unit of work was sent")
	}
	u := r.fold(l).Work(ref.Unit())
	require.NotNil(r.t, u, "the unit is in the log before it is sent")
	r.append(l, event.TurnStartedData{RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1, Worker: "w", Part: u.Part})
	if text == "" {
		r.append(l, event.TurnFailedData{
			RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1, Code: "MODEL_FAILED", Message: "broken", Retryable: true, Part: u.Part,
		})
	} else {
		r.append(l, event.MessageCompletedData{
			MessageID: ref.Unit() + ".m", RunID: u.RunID, ExecutionID: u.ExecutionID, Attempt: 1,
			Role: event.RoleAssistant, Content: text, StopReason: "end", Part: u.Part,
		})
	}
	r.command(l, cmd.TurnEnded, ref.Unit()+".ended", ref)
	return ref
}

// items takes the units of work that the service sends to the workers.
func (r *rig) items() <-chan cmd.WorkRef {
	r.t.Helper()
	out := make(chan cmd.WorkRef, 100)
	w := command.NewWorkers(r.conn, command.WorkersConfig{
		Service: cmd.Agent, Instance: id.MustName("tester"), Concurrency: 16, Logger: zerolog.Nop(),
	}, func(_ context.Context, c cmd.Command, _ command.Delivery) error {
		var ref cmd.WorkRef
		if err := c.Decode(&ref); err != nil {
			return command.Permanent(err)
		}
		out <- ref
		return nil
	})
	require.NoError(r.t, w.Start(r.ctx))
	r.t.Cleanup(w.Stop)
	return out
}
