package worker_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/worker"
)

func TestACallWaitsUntilItIsAllowed(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("call_0", 5))), scripted.Stream(scripted.Text("paid"))), nil)
	r.worker("w1", nil)
	run := r.ask("pay")
	paused := last[event.JobSuspendedData](t, r.until(run, event.JobSuspended))
	q := r.questions(1)[0]
	require.Equal(t, []string{q.InputID}, paused.Inputs)
	require.Equal(t, conversation.QuestionOf(q.CallID), q.InputID)
	require.Equal(t, event.ScopeTool, q.Scope)
	require.Equal(t, "bank_pay", q.Tool)
	require.Equal(t, "pays once for every call", q.Description)
	require.JSONEq(t, `{"amount":5}`, string(q.Arguments))
	require.Zero(t, q.TimeoutSeconds, "it stays open")
	require.Equal(t, 1, q.Attempt)
	require.NotEqual(t, "call_0", q.CallID, "ids of calls are unique in the team, whatever the model thinks")
	require.Zero(t, r.pays.Load())
	r.idle()

	r.release <- struct{}{}
	r.answer(q.CallID, true, "")
	events := r.until(run, event.RunCompleted)
	require.EqualValues(t, 1, r.pays.Load())
	called := all[event.ToolCalledData](t, events)
	require.Len(t, called, 1)
	require.Equal(t, q.InputID, called[0].InputID)
	require.Equal(t, q.Digest, called[0].Digest)
	claims := all[event.JobStartedData](t, events)
	require.Len(t, claims, 2)
	require.True(t, claims[1].Resumed)
	require.Equal(t, 2, last[event.RunCompletedData](t, events).Attempt)
	r.idle()
}

// TestOneMessageManyCalls: calls that need no approval run at once, calls of tools that are not
// offered are not asked about, and each other call has its own decision.
func TestOneMessageManyCalls(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("a", 1), pay("b", 2),
			scripted.Call{ID: "c", Name: "bank_rob", Arguments: `{}`},
			scripted.Call{ID: "d", Name: cmd.ToolListTasks, Arguments: `{}`})),
		scripted.Stream(scripted.Text("done"))), nil)
	r.worker("w1", nil)
	run := r.ask("do it all")
	events := r.until(run, event.JobSuspended)
	questions := all[event.InputRequestedData](t, events)
	require.Len(t, questions, 2, "both at once")
	require.Equal(t, 1, servicetest.Count(events, event.ToolCompleted), "the board was read")
	failed := all[event.ToolFailedData](t, events)
	require.Len(t, failed, 1)
	require.Equal(t, string(fault.ToolNotFound), failed[0].Code)

	r.answer(questions[0].CallID, false, "")
	r.Until(r.ref, event.InputAnswered, 1)
	r.release <- struct{}{}
	r.answer(questions[1].CallID, true, "")
	events = r.until(run, event.RunCompleted)
	require.EqualValues(t, 1, r.pays.Load())
	paid := all[event.ToolCompletedData](t, events)
	require.Equal(t, "paid 2", paid[len(paid)-1].Result)
	require.Equal(t, questions[1].CallID, paid[len(paid)-1].CallID)
}

// TestAnAnswerWhileAnotherCallRuns: the worker has one call running when the other is
// allowed, and begins it then and there.
func TestAnAnswerWhileAnotherCallRuns(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("a", 1), pay("b", 2))), scripted.Stream(scripted.Text("done"))), nil)
	r.worker("w1", nil)
	run := r.ask("pay both")
	r.until(run, event.JobSuspended)
	q := r.questions(2)
	r.answer(q[0].CallID, true, "")
	<-r.paying
	r.answer(q[1].CallID, true, "")
	<-r.paying // although the first has not come to its end
	r.release <- struct{}{}
	r.release <- struct{}{}
	events := r.until(run, event.RunCompleted)
	require.EqualValues(t, 2, r.pays.Load())
	require.Equal(t, 1, servicetest.Count(events, event.JobSuspended))
	require.Equal(t, 2, servicetest.Count(events, event.JobStarted))
	require.Equal(t, 2, servicetest.Count(events, event.ToolCompleted))
}

// TestAnswersRaceWithThePause: people answer at the moment in which the last other call
// ends and the worker is about to put the job down. However it goes, the run continues, and
// each call runs once.
func TestAnswersRaceWithThePause(t *testing.T) {
	const runs = 12
	r := newMember(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N%2 == 1 {
			return scripted.Stream(scripted.Calls(9, pay("a", x.N), scripted.Call{ID: "b", Name: cmd.ToolListTasks, Arguments: `{}`}))
		}
		return scripted.Stream(scripted.Text("done"))
	}, nil)
	r.team.held = make(chan struct{})
	r.worker("w1", nil)
	r.worker("w2", nil)
	close(r.release)
	run := ""
	for i := range runs {
		run = r.ask("pay")
		call := r.questions(i + 1)[i].CallID
		<-r.team.heard
		var held sync.WaitGroup
		held.Go(func() { r.team.held <- struct{}{} })
		r.answer(call, true, "")
		held.Wait()
		r.until(run, event.RunCompleted)
	}
	events := r.until(run, event.RunCompleted)
	require.EqualValues(t, runs, r.pays.Load())
	require.Equal(t, 2*runs, servicetest.Count(events, event.ToolCompleted))
	require.Zero(t, servicetest.Count(events, event.AttemptRefused))
	t.Logf("%d runs: %d were put down before the answer came", runs, servicetest.Count(events, event.JobSuspended))
}

// TestAWorkerDiesWhilePeopleThink: a suspended job needs no worker. Another one resumes it after
// the answer.
func TestAWorkerDiesWhilePeopleThink(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("a", 1))), scripted.Stream(scripted.Text("done"))), nil)
	_, cut := r.worker("w1", nil)
	run := r.ask("pay")
	r.until(run, event.JobSuspended)
	cut.NATS().Close()
	r.worker("w2", nil)
	close(r.release)
	r.answer(r.questions(1)[0].CallID, true, "")
	events := r.until(run, event.RunCompleted)
	require.EqualValues(t, 1, r.pays.Load())
	require.Equal(t, 1, servicetest.Count(events, event.InputRequested), "nobody is asked twice")
	claims := all[event.JobStartedData](t, events)
	require.Equal(t, "w2", claims[len(claims)-1].Worker)
}

// TestWhoWaitsForPeopleUsesUpNoAttempts: more questions than attempts.
func TestWhoWaitsForPeopleUsesUpNoAttempts(t *testing.T) {
	const rounds = 5
	r := newMember(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N <= rounds {
			return scripted.Stream(scripted.Calls(9, pay("a", x.N)))
		}
		return scripted.Stream(scripted.Text("done"))
	}, nil)
	r.worker("w1", func(c *worker.Config) { c.MaxAttempts = 2 })
	close(r.release)
	run := r.ask("pay again and again")
	for i := range rounds {
		r.Until(r.ref, event.JobSuspended, i+1)
		r.answer(r.questions(i + 1)[i].CallID, true, "")
	}
	events := r.until(run, event.RunCompleted)
	require.EqualValues(t, rounds, r.pays.Load())
	require.Equal(t, rounds+1, last[event.RunCompletedData](t, events).Attempt)
}

func TestARunThatWaitsForPeopleCanBeStopped(t *testing.T) {
	r := newMember(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("a", 1))), scripted.Stream(scripted.Text("the next one"))), nil)
	r.worker("w1", nil)
	run := r.ask("pay")
	r.until(run, event.JobSuspended)
	r.command(cmd.Cancel, "stop", cmd.CancelRun{})
	r.until(run, event.RunCancelled)
	r.answer(r.questions(1)[0].CallID, true, "")
	events := r.until(r.ask("go on"), event.RunCompleted)
	require.Zero(t, r.pays.Load())
	require.Zero(t, servicetest.Count(events, event.InputAnswered))
}

// TestWhatWasAllowedIsAnotherCall: the log holds a question about other arguments than
// the call has that was allowed with it. It does not run.
func TestWhatWasAllowedIsAnotherCall(t *testing.T) {
	r := newMember(t, scripted.Always(scripted.Stream(scripted.Text("then not"))), nil)
	run := r.ask("pay")
	started := last[event.RunStartedData](t, r.until(run, event.RunStarted))
	exec := started.ExecutionID
	r.write(
		event.JobStartedData{RunID: run, ExecutionID: exec, Attempt: 1, Worker: "w0", CommandID: "an item"},
		event.MessageCompletedData{
			MessageID: "m1", RunID: run, ExecutionID: exec, Attempt: 1, Role: event.RoleAssistant, StopReason: "tool_calls",
			ToolCalls: []event.ToolCall{{ID: "call_1", Name: "bank_pay", Arguments: json.RawMessage(`{"amount":5000}`)}},
		},
		event.InputRequestedData{
			InputID: conversation.QuestionOf("call_1"), RunID: run, ExecutionID: exec, Scope: event.ScopeTool, Attempt: 1,
			CallID: "call_1", Tool: "bank_pay", Arguments: json.RawMessage(`{"amount":5}`), Digest: strings.Repeat("0", 64),
		},
		event.JobSuspendedData{RunID: run, ExecutionID: exec, Attempt: 1, Inputs: []string{conversation.QuestionOf("call_1")}},
	)
	r.answer("call_1", true, "")
	r.Until(r.ref, event.InputAnswered, 1)
	r.worker("w1", nil)
	events := r.until(run, event.RunCompleted)
	require.Zero(t, r.pays.Load())
	failed := all[event.ToolFailedData](t, events)
	require.Len(t, failed, 1)
	require.Equal(t, string(fault.ToolDenied), failed[0].Code)
	require.Contains(t, failed[0].Message, "does not match this call")
	require.Zero(t, servicetest.Count(events, event.ToolStarted))
}

// write appends events as another writer.
func (r *rig) write(data ...event.Data) {
	r.T.Helper()
	w := r.Log.Writer(r.ref, nil)
	for i, d := range data {
		e, err := event.New(r.ref, "made-"+string(rune('a'+i)), "test", time.Now(), d)
		require.NoError(r.T, err)
		done := false
		require.NoError(r.T, w.Append(r.Ctx, func() ([]event.Event, error) {
			if done {
				return nil, nil
			}
			done = true
			return []event.Event{e}, nil
		}))
	}
}
