package worker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/access"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/worker"
)

// newRuled is a rig of a session with the operator's rules for the bank.
func newRuled(t *testing.T, script scripted.Script, rules tools.Rules) *rig {
	t.Helper()
	return newRigUnder(t, script, pipeline.Config{Backoff: time.Millisecond, OnBusy: event.OnBusyEnqueue}, rules)
}

// TestASessionAsksBeforeAWritingTool: the rules that an operator did not set ask. The call runs
// once, after the answer.
func TestASessionAsksBeforeAWritingTool(t *testing.T) {
	r := newRuled(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("call_0", 5))), scripted.Stream(scripted.Text("paid"))), tools.Rules{})
	r.worker("w1", nil)
	run := r.ask("pay")
	r.until(run, event.JobSuspended)
	q := r.questions(1)[0]
	require.Equal(t, []string{event.ScopeTool, "bank_pay"}, []string{q.Scope, q.Tool})
	require.Zero(t, r.pays.Load())
	r.idle()
	r.release <- struct{}{}
	r.answer(q.CallID, true, "")
	events := r.until(run, event.RunCompleted)
	require.EqualValues(t, 1, r.pays.Load())
	require.Equal(t, q.InputID, all[event.ToolCalledData](t, events)[0].InputID)
}

// TestACallRunsAsAPersonHasChangedIt: the tool gets the changed arguments, the log says what ran and by which answer, and the model
// learns of it. Arguments that the tool does not take leave the question open.
func TestACallRunsAsAPersonHasChangedIt(t *testing.T) {
	r := newRuled(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("call_0", 50))), scripted.Stream(scripted.Text("paid"))), tools.Rules{})
	r.worker("w1", nil)
	run := r.ask("pay")
	r.until(run, event.JobSuspended)
	q := r.questions(1)[0]
	require.Contains(t, string(q.Parameters), `"amount"`)
	changed := func(arguments string) cmd.AnswerQuestion {
		return cmd.AnswerQuestion{
			CallID: q.CallID, Approved: true, Arguments: []byte(arguments), Digest: event.CallDigest(q.Tool, []byte(arguments)), Shown: q.Digest,
		}
	}
	r.command(cmd.Answer, "wrong", changed(`{"amount":"five"}`))
	r.release <- struct{}{}
	r.command(cmd.Answer, "right", changed(`{"amount":5}`))
	events := r.until(run, event.RunCompleted)
	require.EqualValues(t, 1, r.pays.Load())
	called := all[event.ToolCalledData](t, events)[0]
	require.JSONEq(t, `{"amount":5}`, string(called.Arguments))
	require.Equal(t, []string{event.CallDigest(q.Tool, []byte(`{"amount":5}`)), q.InputID}, []string{called.Digest, called.InputID})
	require.Equal(t, "paid 5", all[event.ToolCompletedData](t, events)[0].Result)
	answers := all[event.InputAnsweredData](t, events)
	require.Len(t, answers, 1)
	require.Equal(t, []string{event.DecisionModify, "right"}, []string{answers[0].Decision, answers[0].CommandID})
	x, err := r.llm.Exchange(r.Ctx, 2)
	require.NoError(t, err)
	require.Contains(t, string(x.Body), "A person has changed the arguments of this call")
	require.NotContains(t, string(x.Body), "50")
}

// TestAnApprovalIsForTheToolThatWasShown: a tool that changes between the question and the answer does not run. The model
// learns why and asks anew, and people see the new description.
func TestAnApprovalIsForTheToolThatWasShown(t *testing.T) {
	r := newRuled(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("call_0", 5))), scripted.Stream(scripted.Calls(9, pay("call_1", 5))), scripted.Stream(scripted.Text("paid"))), tools.Rules{})
	r.worker("w1", nil)
	run := r.ask("pay")
	q := r.questions(1)[0]
	require.Equal(t, "pays once for every call", q.Description)
	r.offerPay("pays ten times for every call")
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(r.offers(), func(o tools.Tool) bool { return o.Description == "pays ten times for every call" })
	}, maxWait, 20*time.Millisecond)
	r.answer(q.CallID, true, "")
	again := r.questions(2)[1]
	require.Equal(t, "pays ten times for every call", again.Description)
	require.Zero(t, r.pays.Load())
	x, err := r.llm.Exchange(r.Ctx, 2)
	require.NoError(t, err)
	require.Contains(t, string(x.Body), "has changed since this call was shown for approval, so it was not run")
	r.release <- struct{}{}
	r.answer(again.CallID, true, "")
	events := r.until(run, event.RunCompleted)
	require.EqualValues(t, 1, r.pays.Load())
	failed := all[event.ToolFailedData](t, events)
	require.Len(t, failed, 1)
	require.Equal(t, []string{q.CallID, string(fault.ToolDenied)}, []string{failed[0].CallID, failed[0].Code})
}

// TestArgumentsThatFitIntoNoEvent: the call is not made and people are not asked about it. The model learns why, and the run continues.
func TestArgumentsThatFitIntoNoEvent(t *testing.T) {
	huge := pay("call_0", 5)
	huge.Arguments = fmt.Sprintf(`{"amount":5,"for":%q}`, strings.Repeat("x", 1<<20))
	r := newRuled(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(1<<10, huge, pay("call_1", 7))), scripted.Stream(scripted.Text("paid less"))), tools.Rules{})
	r.worker("w1", nil)
	run := r.ask("pay")
	q := r.questions(1)[0]
	require.JSONEq(t, `{"amount":7}`, string(q.Arguments), "the other call is made")
	r.release <- struct{}{}
	r.answer(q.CallID, true, "")
	events := r.until(run, event.RunCompleted)
	require.EqualValues(t, 1, r.pays.Load())
	x, err := r.llm.Exchange(r.Ctx, 2)
	require.NoError(t, err)
	require.Contains(t, string(x.Body), "The arguments are too large")
	failed := all[event.ToolFailedData](t, events)
	require.Len(t, failed, 1)
	require.Contains(t, failed[0].Message, "Call the tool again with less at a time")
}

// TestAClientToolWithTheNameOfAnother: the other one is offered, and people are told so once.
func TestAClientToolWithTheNameOfAnother(t *testing.T) {
	r := newRuled(t, scripted.Sequence(scripted.Stream(scripted.Calls(9, pay("call_0", 5))), scripted.Stream(scripted.Text("not paid"))), tools.Rules{})
	r.worker("w1", nil)
	r.command(cmd.SendMessage, "m", cmd.UserMessage{Content: "pay", RunSpec: event.RunSpec{ClientTools: []event.ClientTool{{Name: "bank_pay"}, {Name: "mine"}}}})
	q := r.questions(1)[0]
	require.Equal(t, event.ScopeTool, q.Scope, "the client's would have another")
	r.answer(q.CallID, false, "")
	notices := all[event.NoticeData](t, r.until(runID("m"), event.RunCompleted))
	require.Len(t, notices, 1)
	require.Equal(t, event.ToolLeftOut, notices[0].Code)
	require.Contains(t, notices[0].Message, "the client's tool bank_pay: another tool has this name")
}

// TestASessionRejectsACall: the model learns that and why.
func TestASessionRejectsACall(t *testing.T) {
	r := newRuled(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, pay("call_0", 5))), scripted.Stream(scripted.Text("then not"))), tools.Rules{})
	r.worker("w1", nil)
	run := r.ask("pay")
	r.answer(r.questions(1)[0].CallID, false, "too expensive")
	events := r.until(run, event.RunCompleted)
	require.Zero(t, r.pays.Load())
	require.Zero(t, servicetest.Count(events, event.ToolCalled)+servicetest.Count(events, event.ToolFailed))
	x, err := r.llm.Exchange(r.Ctx, 2)
	require.NoError(t, err)
	require.Contains(t, string(x.Body), "denied: too expensive")
}

// TestEveryCallHasAQuestionOfItsOwn: the model's ids repeat from run to run; each call has a
// question of its own.
func TestEveryCallHasAQuestionOfItsOwn(t *testing.T) {
	r := newRuled(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N%2 == 1 {
			return scripted.Stream(scripted.Calls(9, pay("call_0", x.N)))
		}
		return scripted.Stream(scripted.Text("done"))
	}, tools.Rules{Approval: event.ApprovalAlways})
	r.worker("w1", nil)
	for i := range 3 {
		run := r.ask("pay")
		r.answer(r.questions(i + 1)[i].CallID, false, "")
		r.until(run, event.RunCompleted)
	}
	require.Zero(t, r.pays.Load())
}

// TestUntrustedOutputMakesWritersAsk: the output of the bank is not trusted. From then on the model
// may not write unasked, also in the next run, and reading stays free.
func TestUntrustedOutputMakesWritersAsk(t *testing.T) {
	write := scripted.Call{ID: "w", Name: "workspace_write_file", Arguments: `{"path":"x.txt","content":"as told"}`}
	read := scripted.Call{ID: "r", Name: "workspace_list_files", Arguments: `{}`}
	r := newRuled(t, scripted.Sequence(
		scripted.Stream(scripted.Calls(9, write)), // before
		scripted.Stream(scripted.Calls(9, pay("p", 1))),
		scripted.Stream(scripted.Calls(9, write, read)), // an injected text has the model do this
		scripted.Stream(scripted.Text("done")),
		scripted.Stream(scripted.Calls(9, write)), // the next run has read it, too
		scripted.Stream(scripted.Text("done again")),
	), tools.Rules{Approval: event.ApprovalNever, Untrusted: true})
	close(r.release)
	r.worker("w1", nil)
	run := r.ask("pay")
	events := r.until(run, event.JobSuspended)
	var did []string
	for _, c := range all[event.ToolCompletedData](t, events) {
		did = append(did, c.Tool)
		require.Equal(t, c.Tool == "bank_pay", c.Untrusted)
	}
	require.Equal(t, []string{"workspace_write_file", "bank_pay", "workspace_list_files"}, did)
	require.Equal(t, "workspace_write_file", r.questions(1)[0].Tool)
	r.answer(r.questions(1)[0].CallID, false, "")
	r.until(run, event.RunCompleted)
	next := r.ask("go on")
	r.answer(r.questions(2)[1].CallID, true, "")
	r.until(next, event.RunCompleted)
}

// TestATenantUsesItsModelsOnly: the worker asks no other model, whatever other services think of it.
func TestATenantUsesItsModelsOnly(t *testing.T) {
	for _, allowed := range []string{"demo", "openai:x"} {
		t.Run(allowed, func(t *testing.T) {
			r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("hello"))))
			r.worker("w1", func(c *worker.Config) { c.Access.Default.Models = []string{allowed} })
			run := r.ask("hi")
			if allowed == "openai:x" {
				r.until(run, event.RunCompleted)
				return
			}
			failed := last[event.RunFailedData](t, r.until(run, event.RunFailed))
			require.Equal(t, string(fault.Forbidden), failed.Code)
			require.Contains(t, failed.Message, "openai:x")
			require.Empty(t, r.llm.Exchanges())
		})
	}
}

// TestAMessageForABarredModelIsRefused: before a run begins, as soon as workers are known.
func TestAMessageForABarredModelIsRefused(t *testing.T) {
	r := newRigWith(t, scripted.Always(scripted.Stream(scripted.Text("hello"))), pipeline.Config{
		Access: access.Policy{Default: access.Settings{Models: []string{"demo"}}},
	})
	r.worker("w1", nil)
	r.command(cmd.SendMessage, "m", cmd.UserMessage{Content: "hi"})
	events := r.Until(r.ref, event.MessageRefused, 1)
	require.Equal(t, string(fault.Forbidden), last[event.MessageRefusedData](t, events).Code)
}
