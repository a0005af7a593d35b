package builtin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker/builtin"
)

// TestATaskIsAChatOfItsOwn: in every tenant, with progress and a result, and a session
// that is over afterwards.
func TestATaskIsAChatOfItsOwn(t *testing.T) {
	r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N%2 == 1 {
			return scripted.Stream(scripted.Calls(0, scripted.Call{ID: "c", Name: "workspace_list", Arguments: `{}`}))
		}
		return scripted.Stream(scripted.Text("nothing there"))
	})
	r.assistant(builtin.Config{})
	other, err := id.ParseTenant("other")
	require.NoError(t, err)
	for _, tenant := range []id.Tenant{id.DefaultTenant, other} {
		require.Equal(t, tenant, r.agents(tenant)[0].Tenant)
		log := r.submit(tenant, `{"question":"what is there?"}`)
		end := r.end(log)
		require.Equal(t, event.TaskEndCompleted, end.Status)
		require.JSONEq(t, `{"text":"nothing there"}`, string(end.Result))
		events := r.Until(log, event.TaskFinished, 1)
		require.Equal(t, 1, servicetest.Count(events, event.TaskNotified), "%v", servicetest.Types(events))
		session := r.Until(builtin.SessionOf(log), event.SessionClosed, 1)
		require.Equal(t, 1, servicetest.Count(session, event.RunCompleted))
	}
	require.Contains(t, string(r.llm.Exchanges()[0].Body), "what is there?")
}

// TestASessionOfATaskBelongsToTheOwnerOfTheTask, although the agent writes in it in its own name.
func TestASessionOfATaskBelongsToTheOwnerOfTheTask(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("done"))))
	r.assistant(builtin.Config{})
	var v cmd.TaskView
	require.NoError(t, rpc.Call(r.Ctx, r.Conn, cmd.Task, cmd.Submit, cmd.ParticipantRequest{
		Tenant: id.DefaultTenant, Principal: "ann", Data: servicetest.JSON(t, cmd.NewTask{AgentName: "assistant", Data: json.RawMessage(`{"text":"go"}`), Owner: "ben"}),
	}, &v))
	log := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindTask, Entity: id.EntityFromExternal(v.TaskID)}
	require.Equal(t, event.TaskEndCompleted, r.end(log).Status)
	opened, err := event.As[event.SessionCreatedData](r.Until(builtin.SessionOf(log), event.SessionClosed, 1)[0])
	require.NoError(t, err)
	require.Equal(t, "ann", opened.Owner)
	require.Empty(t, opened.Principal)
}

// TestAnotherInstanceGoesOn: the instance that has the task stops in the middle of the
// run; the next one finds the run, and the model is asked once.
func TestAnotherInstanceGoesOn(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Gate(hold), scripted.Text("at last"))))
	first := r.assistant(builtin.Config{})
	log := r.submit(id.DefaultTenant, `"speak"`)
	r.Until(builtin.SessionOf(log), event.JobStarted, 1)
	first.Stop()
	r.Until(log, event.TaskReleased, 1)
	r.assistant(builtin.Config{})
	close(hold)
	end := r.end(log)
	require.JSONEq(t, `{"text":"at last"}`, string(end.Result))
	require.Equal(t, 2, end.Attempt)
	require.Len(t, r.llm.Exchanges(), 1)
}

// TestAnotherInstanceFindsTheAnswer: the run ends while no instance holds the task.
func TestAnotherInstanceFindsTheAnswer(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Gate(hold), scripted.Text("at last"))))
	first := r.assistant(builtin.Config{})
	log := r.submit(id.DefaultTenant, `"speak"`)
	r.Until(builtin.SessionOf(log), event.JobStarted, 1)
	first.Stop()
	r.Until(log, event.TaskReleased, 1)
	close(hold)
	r.Until(builtin.SessionOf(log), event.RunCompleted, 1)
	r.assistant(builtin.Config{})
	require.JSONEq(t, `{"text":"at last"}`, string(r.end(log).Result))
	require.Len(t, r.llm.Exchanges(), 1)
}

// TestACancelledTaskStopsItsRun: the model's request is closed.
func TestACancelledTaskStopsItsRun(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("half"), scripted.Hang())))
	r.assistant(builtin.Config{})
	log := r.submit(id.DefaultTenant, `"speak"`)
	r.Until(builtin.SessionOf(log), event.MessageDelta, 1)
	r.command(log, cmd.CancelTask, "stop", cmd.CancelTaskData{TaskID: log.Entity.String()})
	require.Equal(t, event.TaskEndCancelled, r.end(log).Status)
	session := r.Until(builtin.SessionOf(log), event.SessionClosed, 1)
	require.Equal(t, 1, servicetest.Count(session, event.RunCancelled))
}

// TestWhatTheClientSaysOnTheWay is answered too, and the last answer is the result.
func TestWhatTheClientSaysOnTheWay(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N == 1 {
			return scripted.Stream(scripted.Gate(hold), scripted.Text("one"))
		}
		return scripted.Stream(scripted.Text("two"))
	})
	r.assistant(builtin.Config{})
	log := r.submit(id.DefaultTenant, `"speak"`)
	r.Until(builtin.SessionOf(log), event.JobStarted, 1)
	r.command(log, cmd.MessageTask, "more", cmd.TaskMessage{TaskID: log.Entity.String(), Message: []byte(`{"text":"and louder"}`)})
	r.Until(builtin.SessionOf(log), event.MessageReceived, 2)
	close(hold)
	require.JSONEq(t, `{"text":"two"}`, string(r.end(log).Result))
	require.Contains(t, string(r.llm.Exchanges()[1].Body), "and louder")
}

// TestWhatFailsIsSaid: the error of the run is that of the task.
func TestWhatFailsIsSaid(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Fail(http.StatusUnauthorized, "auth", "no")))
	r.assistant(builtin.Config{})
	end := r.end(r.submit(id.DefaultTenant, `"speak"`))
	require.Equal(t, event.TaskEndFailed, end.Status)
	require.NotEmpty(t, end.Code)
	require.NotEmpty(t, end.Error)
}

// TestTheFullAndTheLeavingTakeNothing: what they do not take waits for others.
func TestTheFullAndTheLeavingTakeNothing(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Gate(hold), scripted.Text("done"))))
	a := r.assistant(builtin.Config{Concurrency: 1})
	first := r.submit(id.DefaultTenant, `"one"`)
	r.Until(builtin.SessionOf(first), event.JobStarted, 1)
	second := r.submit(id.DefaultTenant, `"two"`)
	r.Until(second, event.TaskQueued, 1)
	drained := make(chan error, 1)
	go func() { drained <- a.Drain(context.WithoutCancel(r.Ctx)) }()
	require.Eventually(t, func() bool { return r.agents(id.DefaultTenant)[0].Status == cmd.StatusInactive }, maxWait, 10*time.Millisecond)
	close(hold)
	require.NoError(t, <-drained)
	require.Equal(t, event.TaskEndCompleted, r.end(first).Status, "what is on comes to its end")
	require.Eventually(t, func() bool { return len(r.agents(id.DefaultTenant)) == 0 }, maxWait, 10*time.Millisecond, "and is not remembered")
	r.assistant(builtin.Config{})
	require.Equal(t, event.TaskEndCompleted, r.end(second).Status)
}

// TestATaskWhoseSessionIsDeletedFails instead of waiting for an answer that cannot come.
func TestATaskWhoseSessionIsDeletedFails(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("half"), scripted.Hang())))
	first := r.assistant(builtin.Config{})
	log := r.submit(id.DefaultTenant, `"speak"`)
	session := builtin.SessionOf(log)
	r.Until(session, event.JobStarted, 1)
	first.Stop()
	r.Until(log, event.TaskReleased, 1)
	r.Command(cmd.Command{
		ID: "delete", Service: cmd.Session, Verb: cmd.Delete, Tenant: session.Tenant, Key: session.Entity, Time: time.Now(),
	}, nil)
	require.Eventually(t, func() bool {
		erased, err := r.Log.Erased(r.Ctx, session)
		return err == nil && erased
	}, maxWait, 5*time.Millisecond)
	r.assistant(builtin.Config{})
	end := r.end(log)
	require.Equal(t, event.TaskEndFailed, end.Status)
	require.Equal(t, "SESSION_DELETED", end.Code)
}
