package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/quota"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/agent"
	"github.com/waggle-dev/waggle/services/agent/model/scripted"
	"github.com/waggle-dev/waggle/services/pipeline"
)

func newBudgetRig(t *testing.T, script scripted.Script, b event.Budget) *rig {
	t.Helper()
	return newRigWith(t, script, pipeline.Config{Backoff: time.Millisecond, OnBusy: event.OnBusyEnqueue, Budget: b})
}

// looks is a model that looks twice, using 25 tokens at a time, and then answers.
func looks() scripted.Script {
	list := scripted.Calls(4, call("workspace_list_files", `{}`))
	return scripted.Sequence(
		scripted.Stream(list, scripted.Usage(15, 10)), scripted.Stream(list, scripted.Usage(15, 10)),
		scripted.Stream(scripted.Text("all seen"), scripted.Usage(15, 10)))
}

func (r *rig) decide(id, input string, yes bool) {
	r.t.Helper()
	r.command(cmd.Respond, id, cmd.RespondInput{InputID: input, Approved: yes})
}

func TestARunStopsAtItsTokenBudget(t *testing.T) {
	r := newBudgetRig(t, looks(), event.Budget{Tokens: 50, OnExceeded: event.BudgetStop})
	r.worker("w1", nil)
	events := r.until(r.ask("look"), event.RunFailed)
	d := last[event.RunFailedData](t, events)
	require.Equal(t, string(fault.BudgetExceeded), d.Code)
	require.Contains(t, d.Message, "50 of 50 tokens")
	require.Equal(t, event.BudgetTokens, d.Budget.Resource)
	require.Equal(t, int64(50), d.Budget.Tokens)
	require.Equal(t, 1, d.Budget.ToolCalls)
	require.Equal(t, 2, count(events, event.MessageCompleted), "the model is not asked a third time")
}

func TestAClientMayLowerTheBudgetAndNotRaiseIt(t *testing.T) {
	for name, c := range map[string]struct{ asked, want int64 }{"lower": {20, 25}, "higher": {1000, 50}} {
		t.Run(name, func(t *testing.T) {
			r := newBudgetRig(t, looks(), event.Budget{Tokens: 50, OnExceeded: event.BudgetAsk})
			r.worker("w1", nil)
			r.command(cmd.Message, "m", cmd.UserMessage{Content: "look", RunSpec: event.RunSpec{
				Budget: &event.Budget{Tokens: c.asked, OnExceeded: event.BudgetStop},
			}})
			d := last[event.RunFailedData](t, r.until(runID("m"), event.RunFailed))
			require.Equal(t, c.want, d.Budget.Tokens)
		})
	}
}

// TestARunAsksForMoreBudget: the worker that asked is killed while people think about
// it; another goes on when they have answered, as often as they do.
func TestARunAsksForMoreBudget(t *testing.T) {
	r := newBudgetRig(t, looks(), event.Budget{Tokens: 20, OnExceeded: event.BudgetAsk})
	_, cut := r.worker("w1", nil)
	run := r.ask("look")
	events := r.until(run, event.TurnPaused)
	var q event.InputRequestedData
	for _, e := range events {
		if e.Type == event.InputRequested {
			var err error
			q, err = event.As[event.InputRequestedData](e)
			require.NoError(t, err)
		}
	}
	require.Equal(t, event.ScopeBudget, q.Scope)
	require.Equal(t, int64(25), q.Budget.Tokens)
	require.Equal(t, []string{q.InputID}, last[event.TurnPausedData](t, events).Inputs)
	require.Contains(t, q.Summary, "25 of 20 tokens")
	cut.NATS().Close()
	r.worker("w2", nil)
	r.decide("yes-1", q.InputID, true)
	r.decide("late", q.InputID, false) // one answer counts
	second := r.nextQuestion(q.InputID)
	require.Equal(t, int64(50), second.Budget.Tokens)
	require.Equal(t, int64(40), second.Budget.Limit.Tokens)
	require.Equal(t, 1, second.Budget.Granted)
	r.decide("yes-2", second.InputID, true)
	events = r.until(run, event.RunCompleted)
	require.Equal(t, "all seen", last[event.RunCompletedData](t, events).Content)
	require.Equal(t, 2, count(events, event.InputAnswered))
	require.Equal(t, 2, count(events, event.ToolCompleted), "no tool ran twice")
}

// nextQuestion waits for a question after the one with the id.
func (r *rig) nextQuestion(before string) (q event.InputRequestedData) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		for _, e := range r.all() {
			if e.Type == event.InputRequested {
				d, err := event.As[event.InputRequestedData](e)
				require.NoError(r.t, err)
				q = d
			}
		}
		return q.InputID != before
	}, patience, 20*time.Millisecond)
	return q
}

func TestARunWhoseBudgetIsRefusedEnds(t *testing.T) {
	r := newBudgetRig(t, looks(), event.Budget{ToolCalls: 1, OnExceeded: event.BudgetAsk})
	r.worker("w1", nil)
	run := r.ask("look")
	r.until(run, event.TurnPaused)
	q := r.nextQuestion("")
	require.Equal(t, event.BudgetToolCalls, q.Budget.Resource)
	r.decide("no", q.InputID, false)
	events := r.until(run, event.RunFailed)
	d := last[event.RunFailedData](t, events)
	require.Equal(t, string(fault.BudgetExceeded), d.Code)
	require.Equal(t, 1, d.Budget.ToolCalls)
	require.Equal(t, 1, count(events, event.ToolCompleted))
}

func TestNobodyAnswersInTime(t *testing.T) {
	r := newBudgetRig(t, looks(), event.Budget{Tokens: 20, OnExceeded: event.BudgetAsk, AskSeconds: 1})
	r.worker("w1", nil)
	events := r.until(r.ask("look"), event.RunFailed)
	require.Equal(t, 1, count(events, event.InputExpired))
	require.Equal(t, string(fault.BudgetExceeded), last[event.RunFailedData](t, events).Code)
}

// TestAPipelineRunStopsAsAWhole: units side by side share the budget of their run.
func TestAPipelineRunStopsAsAWhole(t *testing.T) {
	r := newBudgetRig(t, scripted.Always(scripted.Stream(scripted.Text("done"), scripted.Usage(15, 10))), event.Budget{Tokens: 30, OnExceeded: event.BudgetStop})
	r.worker("w1", nil)
	r.command(cmd.Message, "m", cmd.UserMessage{Content: "do", RunSpec: event.RunSpec{Mode: event.ModeTasks, MaxConcurrent: 1, Tasks: []event.Task{
		{ID: "a", Title: "a"}, {ID: "b", Title: "b"}, {ID: "c", Title: "c"}, {ID: "d", Title: "d", Dependencies: []string{"a"}},
	}}})
	events := r.until(runID("m"), event.RunFailed)
	d := last[event.RunFailedData](t, events)
	require.Equal(t, string(fault.BudgetExceeded), d.Code)
	require.Equal(t, int64(50), d.Budget.Tokens)
	require.Equal(t, 2, count(events, event.TaskCompleted))
}

func TestTheTokensOfTheDayAreUsedUp(t *testing.T) {
	r := newRig(t, looks())
	keeper, err := quota.OpenDaily(r.ctx, quota.Config{
		Conn: bustest.Dial(t, r.conn.NATS().ConnectedUrl()), Policy: quota.Policy{Tenant: quota.Limits{Tokens: 40}},
	})
	require.NoError(t, err)
	t.Cleanup(keeper.Close)
	r.daily = keeper
	r.worker("w1", func(*agent.Config) {})
	events := r.until(r.ask("look"), event.RunFailed)
	d := last[event.RunFailedData](t, events)
	require.Equal(t, string(fault.QuotaExceeded), d.Code)
	require.Contains(t, d.Message, "50 of 40 tokens of today")
	require.Equal(t, 2, count(events, event.UsageRecorded))
}
