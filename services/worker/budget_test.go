package worker_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/pipeline"
	"github.com/waggle-dev/waggle/services/worker"
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
	r.T.Helper()
	r.command(cmd.Answer, id, cmd.AnswerQuestion{InputID: input, Approved: yes})
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
	require.Equal(t, 2, servicetest.Count(events, event.MessageCompleted), "the model is not asked a third time")
}

func TestAClientMayLowerTheBudgetAndNotRaiseIt(t *testing.T) {
	for name, c := range map[string]struct{ asked, want int64 }{"lower": {20, 25}, "higher": {1000, 50}} {
		t.Run(name, func(t *testing.T) {
			r := newBudgetRig(t, looks(), event.Budget{Tokens: 50, OnExceeded: event.BudgetAsk})
			r.worker("w1", nil)
			r.command(cmd.SendMessage, "m", cmd.UserMessage{Content: "look", RunSpec: event.RunSpec{
				Budget: &event.Budget{Tokens: c.asked, OnExceeded: event.BudgetStop},
			}})
			d := last[event.RunFailedData](t, r.until(runID("m"), event.RunFailed))
			require.Equal(t, c.want, d.Budget.Tokens)
		})
	}
}

// TestARunAsksForMoreBudget: the worker that asked is killed while people think about
// it; another continues when they have answered, as often as they do.
func TestARunAsksForMoreBudget(t *testing.T) {
	r := newBudgetRig(t, looks(), event.Budget{Tokens: 20, OnExceeded: event.BudgetAsk})
	_, cut := r.worker("w1", nil)
	run := r.ask("look")
	events := r.until(run, event.JobSuspended)
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
	require.Equal(t, []string{q.InputID}, last[event.JobSuspendedData](t, events).Inputs)
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
	require.Equal(t, 2, servicetest.Count(events, event.InputAnswered))
	require.Equal(t, 2, servicetest.Count(events, event.ToolCompleted), "no tool ran twice")
}

// nextQuestion waits for a question after the one with the id.
func (r *rig) nextQuestion(before string) (q event.InputRequestedData) {
	r.T.Helper()
	require.Eventually(r.T, func() bool {
		for _, e := range r.All(r.ref) {
			if e.Type == event.InputRequested {
				d, err := event.As[event.InputRequestedData](e)
				require.NoError(r.T, err)
				q = d
			}
		}
		return q.InputID != before
	}, maxWait, 20*time.Millisecond)
	return q
}

func TestARunWhoseBudgetIsRefusedEnds(t *testing.T) {
	r := newBudgetRig(t, looks(), event.Budget{ToolCalls: 1, OnExceeded: event.BudgetAsk})
	r.worker("w1", nil)
	run := r.ask("look")
	r.until(run, event.JobSuspended)
	q := r.nextQuestion("")
	require.Equal(t, event.BudgetToolCalls, q.Budget.Resource)
	r.decide("no", q.InputID, false)
	events := r.until(run, event.RunFailed)
	d := last[event.RunFailedData](t, events)
	require.Equal(t, string(fault.BudgetExceeded), d.Code)
	require.Equal(t, 1, d.Budget.ToolCalls)
	require.Equal(t, 1, servicetest.Count(events, event.ToolCompleted))
}

func TestABudgetQuestionExpires(t *testing.T) {
	r := newBudgetRig(t, looks(), event.Budget{Tokens: 20, OnExceeded: event.BudgetAsk, AskSeconds: 1})
	r.worker("w1", nil)
	events := r.until(r.ask("look"), event.RunFailed)
	require.Equal(t, 1, servicetest.Count(events, event.InputExpired))
	require.Equal(t, string(fault.BudgetExceeded), last[event.RunFailedData](t, events).Code)
}

// TestAPipelineRunStopsAsAWhole: jobs side by side share the budget of their run.
func TestAPipelineRunStopsAsAWhole(t *testing.T) {
	r := newBudgetRig(t, scripted.Always(scripted.Stream(scripted.Text("done"), scripted.Usage(15, 10))), event.Budget{Tokens: 30, OnExceeded: event.BudgetStop})
	r.worker("w1", nil)
	r.command(cmd.SendMessage, "m", cmd.UserMessage{Content: "do", RunSpec: event.RunSpec{Mode: event.ModeSteps, MaxConcurrent: 1, Steps: []event.Step{
		{ID: "a", Title: "a"}, {ID: "b", Title: "b"}, {ID: "c", Title: "c"}, {ID: "d", Title: "d", Dependencies: []string{"a"}},
	}}})
	events := r.until(runID("m"), event.RunFailed)
	d := last[event.RunFailedData](t, events)
	require.Equal(t, string(fault.BudgetExceeded), d.Code)
	require.Equal(t, int64(50), d.Budget.Tokens)
	require.Equal(t, 2, servicetest.Count(events, event.StepCompleted))
}

// handClock is a clock that is moved by hand.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[int]timer
	n      int
	set    chan struct{} // one for each timer
}

type timer struct {
	at time.Time
	f  func()
}

func newHandClock() *handClock {
	return &handClock{now: time.Now(), timers: map[int]timer{}, set: make(chan struct{}, 100)}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) After(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	n := c.n
	c.timers[n] = timer{c.now.Add(d), f}
	c.set <- struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, was := c.timers[n]
		delete(c.timers, n)
		return was
	}
}

func (c *handClock) pass(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for n, t := range c.timers {
		if !t.at.After(c.now) {
			due = append(due, t.f)
			delete(c.timers, n)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// A run whose time is up asks at once, though the model is in the middle of a sentence:
// its request is closed, what it has said is taken back, and with more time it is asked
// again.
func TestATimeBudgetThatAsksClosesTheRequest(t *testing.T) {
	r := newBudgetRig(t, scripted.Sequence(
		scripted.Stream(scripted.Text("well, "), scripted.Hang()), scripted.Stream(scripted.Text("all said"), scripted.Usage(15, 10)),
	), event.Budget{Seconds: 60, OnExceeded: event.BudgetAsk})
	clock := newHandClock()
	r.worker("w1", func(c *worker.Config) { c.Now, c.After = clock.Now, clock.After })
	run := r.ask("talk")
	<-clock.set
	r.until(run, event.MessageDelta)
	asked, err := r.llm.Exchange(r.Ctx, 1)
	require.NoError(t, err)
	clock.pass(59 * time.Second)
	require.Zero(t, servicetest.Count(r.All(r.ref), event.InputRequested))
	clock.pass(2 * time.Second)
	events := r.until(run, event.JobSuspended)
	r.gone(asked)
	require.Equal(t, 1, servicetest.Count(events, event.MessageDiscarded))
	require.Zero(t, servicetest.Count(events, event.MessageCompleted))
	q := r.nextQuestion("")
	require.Equal(t, event.BudgetSeconds, q.Budget.Resource)
	require.Contains(t, q.Summary, "of 60 seconds")
	clock.pass(time.Hour) // people take their time, which costs nothing
	r.decide("yes", q.InputID, true)
	events = r.until(run, event.RunCompleted)
	require.Equal(t, "all said", last[event.RunCompletedData](t, events).Content)
	require.Equal(t, 1, servicetest.Count(events, event.InputRequested))
}

// limited gives the workers that are started from now on the quotas of a day.
func (r *rig) limited(l quota.Limits) {
	r.T.Helper()
	d, err := quota.OpenDaily(r.Ctx, quota.Config{
		Conn: bustest.Dial(r.T, r.Conn.NATS().ConnectedUrl()), Policy: quota.Policy{Tenant: l}, Slice: 100 * time.Millisecond,
		Refused: func(q quota.Refusal) { r.refused <- q },
	})
	require.NoError(r.T, err)
	r.T.Cleanup(d.Close)
	r.daily, r.refused = d, make(chan quota.Refusal, 10)
}

func TestTheToolCallsOfTheDayAreUsedUp(t *testing.T) {
	r := newRig(t, looks())
	r.limited(quota.Limits{ToolCalls: 1})
	r.worker("w1", nil)
	events := r.until(r.ask("look"), event.RunFailed)
	d := last[event.RunFailedData](t, events)
	require.Equal(t, string(fault.QuotaExceeded), d.Code)
	require.Contains(t, d.Message, "1 of 1 tool calls of today")
	require.Equal(t, 1, servicetest.Count(events, event.ToolCalled), "the second was not begun")
	refused := <-r.refused
	require.Equal(t, audit.ToolCalls, refused.Resource)
}

func TestTheMoneyOfTheDayIsUsedUp(t *testing.T) {
	r := newRig(t, looks())
	r.limited(quota.Limits{CostUSD: 0.03})
	r.worker("w1", func(c *worker.Config) { c.Prices = worker.Prices{"x": {InputPerMillion: 1000, OutputPerMillion: 1000}} })
	d := last[event.RunFailedData](t, r.until(r.ask("look"), event.RunFailed))
	require.Equal(t, string(fault.QuotaExceeded), d.Code)
	require.Contains(t, d.Message, "$0.0500 of $0.0300 of today")
	require.Equal(t, audit.CostUSD, (<-r.refused).Resource)
}

// A job whose daily quota is used up asks each time. The asking worker dies meanwhile, and no call
// is counted or made twice.
func TestQuotasOfTheDayMayAsk(t *testing.T) {
	r := newRig(t, looks())
	r.limited(quota.Limits{ToolCalls: 1, Tokens: 40, OnExceeded: quota.Ask})
	_, cut := r.worker("w1", nil)
	run := r.ask("look")
	r.until(run, event.JobSuspended)
	q := r.nextQuestion("")
	require.Equal(t, event.ScopeBudget, q.Scope)
	require.Equal(t, "tool_calls", q.Budget.Resource)
	require.Equal(t, quota.ScopeTenant, q.Budget.Quota.Scope)
	require.InDelta(t, 1, q.Budget.Quota.Used, 0)
	require.Contains(t, q.Summary, "1 of 1 tool calls of today")
	cut.NATS().Close()
	r.worker("w2", nil)
	r.decide("yes-1", q.InputID, true)
	q = r.nextQuestion(q.InputID)
	require.Equal(t, "tokens", q.Budget.Resource)
	require.InDelta(t, 50, q.Budget.Quota.Used, 0)
	r.decide("yes-2", q.InputID, true)
	events := r.until(run, event.RunCompleted)
	require.Equal(t, 2, servicetest.Count(events, event.ToolCompleted))
	require.Equal(t, 2, servicetest.Count(events, event.ToolCalled))

	run = r.ask("look again") // another run has to ask for itself
	r.until(run, event.JobSuspended)
	r.decide("no", r.nextQuestion(q.InputID).InputID, false)
	d := last[event.RunFailedData](t, r.until(run, event.RunFailed))
	require.Equal(t, string(fault.QuotaExceeded), d.Code)
	require.Contains(t, d.Message, "the run was not allowed to continue")
	require.Empty(t, r.refused)
}

// The time of the day runs out in the middle of an answer.
func TestTheTimeOfTheDayIsUsedUp(t *testing.T) {
	for _, what := range []string{quota.Stop, quota.Ask} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("well, "), scripted.Hang())))
			r.limited(quota.Limits{Time: brief, OnExceeded: what})
			r.worker("w1", nil)
			run := r.ask("talk")
			asked, err := r.llm.Exchange(r.Ctx, 1)
			require.NoError(t, err)
			if what == quota.Ask {
				r.until(run, event.JobSuspended)
				q := r.nextQuestion("")
				require.Equal(t, "time", q.Budget.Resource)
				r.decide("no", q.InputID, false)
			}
			events := r.until(run, event.RunFailed)
			r.gone(asked)
			require.Equal(t, string(fault.QuotaExceeded), last[event.RunFailedData](t, events).Code)
			require.Equal(t, 1, servicetest.Count(events, event.MessageDiscarded))
		})
	}
}

// A pipeline whose task comes to a limit of the day ends as a whole, without tries that
// would come to it again.
func TestAPipelineStopsAtALimitOfTheDay(t *testing.T) {
	r := newRig(t, scripted.Always(scripted.Stream(scripted.Text("done"), scripted.Usage(15, 10))))
	r.limited(quota.Limits{Tokens: 40})
	r.worker("w1", nil)
	r.command(cmd.SendMessage, "m", cmd.UserMessage{Content: "do", RunSpec: event.RunSpec{Mode: event.ModeSteps, MaxConcurrent: 1, Steps: []event.Step{
		{ID: "a", Title: "a"}, {ID: "b", Title: "b", Dependencies: []string{"a"}}, {ID: "c", Title: "c", Dependencies: []string{"b"}},
	}}})
	events := r.until(runID("m"), event.RunFailed)
	d := last[event.RunFailedData](t, events)
	require.Equal(t, string(fault.QuotaExceeded), d.Code)
	require.Contains(t, d.Message, "50 of 40 tokens of today")
	require.Equal(t, 1, servicetest.Count(events, event.JobFailed))
}
