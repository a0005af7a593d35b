package conversation

import (
	"fmt"
	"math"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation/usage"
)

// clocks measure for how long workers are busy with a run, by the times of the events in its log.
// The writers' clocks may differ by minutes, so each is compared with itself only: the first event
// of a clock during the run gets the latest time that is known.
type clocks struct {
	on     bool                     // some worker was busy at the last event
	latest time.Time                // by the clock of the first
	ahead  map[string]time.Duration // of each, of what it shows over that of the first
}

// work adds the time that has passed by a clock to the run that workers are busy with.
func (s *State) work(at time.Time, clock string) {
	r := s.timed
	if r == nil {
		return
	}
	c := &r.clocks
	if !r.busy() {
		c.on = false
		return
	}
	if !c.on {
		*c = clocks{on: true, latest: s.Updated, ahead: map[string]time.Duration{s.clock: 0}}
	}
	ahead, known := c.ahead[clock]
	if !known {
		c.ahead[clock] = at.Sub(c.latest)
		return
	}
	if now := at.Add(-ahead); now.After(c.latest) {
		r.worked += now.Sub(c.latest)
		c.latest = now
	}
}

// clockOf names the clock by which the event's time was taken: that of the service that
// wrote it, and of a worker's that of the worker.
func (s *State) clockOf(e event.Event) string {
	if s.timed == nil || e.Source != workerSource {
		return e.Source
	}
	return s.clockOfWorker(e)
}

func (s *State) clockOfWorker(e event.Event) string {
	var d struct {
		RunID  string `json:"run_id"`
		Worker string `json:"worker"`
		event.Part
	}
	if eventdata.Into(e, &d) != nil {
		return e.Source
	}
	if d.Worker != "" {
		return e.Source + " " + d.Worker
	}
	if w := s.works[d.Job(d.RunID)]; w != nil {
		return e.Source + " " + w.worker
	}
	return e.Source
}

// busy reports whether some worker has a job of the run.
func (r *Run) busy() bool {
	for _, w := range r.works {
		if w.Attempt > 0 && !w.Ended && !w.Paused && w.Failure == nil {
			return true
		}
	}
	return false
}

// Worked is how long workers have been busy with the run, as the log tells it. It is
// counted for runs whose budget bounds it.
func (r *Run) Worked() time.Duration { return r.worked }

// granted counts how often people have renewed the run's budget.
func (r *Run) granted() int {
	n := 0
	for _, in := range r.budgets {
		if in.quota == nil && in.approved() {
			n++
		}
	}
	return n
}

// Granted returns how often people have allowed the run to continue over a daily limit.
func (r *Run) Granted(resource, scope, day string) int {
	n := 0
	for _, in := range r.budgets {
		if in.quota != nil && in.resource == resource && in.quota.Scope == scope && in.quota.Day == day && in.approved() {
			n++
		}
	}
	return n
}

// Asking reports whether a question about the run's budget, or a day's quota, is open.
func (r *Run) Asking() bool { return r.question() != nil && !r.question().Over }

func (in *Input) approved() bool {
	return in.Answered != nil && in.Answered.Decision == event.DecisionApprove
}

// used returns the run's usage, with the known tokens and cost.
func (r *Run) used() event.BudgetUse {
	var t usage.Tally
	for _, w := range r.works {
		t.Add(w.tally)
	}
	n := r.granted()
	return event.BudgetUse{
		Tokens: t.Input + t.Output, CostUSD: t.Cost, ToolCalls: t.Tools, Seconds: int64(r.worked / time.Second),
		Limit: r.Budget.Times(n + 1), Granted: n,
	}
}

// exceeded returns the usage that keeps the run from the model, or from a call of a tool.
func (r *Run) exceeded(tool bool) (use event.BudgetUse, over bool) {
	use = r.used()
	limit := use.Limit
	switch {
	case limit.Tokens > 0 && use.Tokens >= limit.Tokens:
		use.Resource = event.BudgetTokens
	case limit.CostUSD > 0 && use.CostUSD >= limit.CostUSD:
		use.Resource = event.BudgetCost
	case limit.Seconds > 0 && r.worked >= limit.Time():
		use.Resource = event.BudgetSeconds
	case tool && limit.ToolCalls > 0 && use.ToolCalls >= limit.ToolCalls:
		use.Resource = event.BudgetToolCalls
	}
	return use, use.Resource != ""
}

// afford returns the step if the budget allows it, else the step to take instead.
func (s *State) afford(w *Work, st Step) Step {
	r := s.runs[w.RunID]
	if r == nil || st.Kind != StepGenerate && st.Kind != StepCalls {
		return st
	}
	if r.Asking() && r.question().quota != nil {
		return s.hold(r, st)
	}
	if !r.Budget.Bounds() {
		return st
	}
	if st.Kind == StepCalls {
		return s.affordCalls(r, st)
	}
	if use, over := r.exceeded(false); over {
		return s.halt(r, st, use)
	}
	return st
}

// affordCalls is afford for calls of tools: those that were begun are brought to their
// end, of the others as many are made as the run can afford.
func (s *State) affordCalls(r *Run, st Step) Step {
	begun, fresh := s.begun(st.Calls)
	if len(fresh) == 0 {
		return st
	}
	use, over := r.exceeded(true)
	if !over {
		if left := use.Limit.ToolCalls - use.ToolCalls; use.Limit.ToolCalls > 0 && left < len(fresh) {
			st.Calls = append(begun, fresh[:left]...)
		}
		return st
	}
	if len(begun)+len(st.Ask) == 0 {
		return s.halt(r, st, use)
	}
	st.Calls = begun
	return st
}

// hold returns the rest of a step while people are asked about a daily quota: it finishes calls
// that have begun.
func (s *State) hold(r *Run, st Step) Step {
	if begun, _ := s.begun(st.Calls); len(begun) > 0 {
		return Step{Kind: StepCalls, Rounds: st.Rounds, Calls: begun, Inputs: st.Inputs}
	}
	return Step{Kind: StepWait, Rounds: st.Rounds, Inputs: []string{r.question().ID}}
}

// begun tells apart the calls that are in the log and those that are not.
func (s *State) begun(calls []event.ToolCall) (begun, fresh []event.ToolCall) {
	for _, c := range calls {
		if s.calls[c.ID] != nil {
			begun = append(begun, c)
		} else {
			fresh = append(fresh, c)
		}
	}
	return begun, fresh
}

// halt returns the step for a run that has used up its budget.
func (s *State) halt(r *Run, st Step, use event.BudgetUse) Step {
	out := Step{Kind: StepStop, Rounds: st.Rounds, Use: use}
	if r.Budget.OnExceeded != event.BudgetAsk {
		return out
	}
	in := r.question()
	switch {
	case in == nil || in.approved():
		out.Kind = StepAsk
	case !in.Over:
		out.Kind, out.Inputs = StepWait, []string{in.ID}
	}
	return out
}

// question returns the newest question about the run's budget, or nil.
func (r *Run) question() *Input {
	if len(r.budgets) == 0 {
		return nil
	}
	return r.budgets[len(r.budgets)-1]
}

// budgetAsked folds the question whether to renew a run's budget.
func (s *State) budgetAsked(e event.Event, d event.InputRequestedData) error {
	return s.onRun(d.RunID, func(r *Run) {
		if s.inputs[d.InputID] != nil {
			return
		}
		in := &Input{
			ID: d.InputID, RunID: d.RunID, Asked: e.Time, Over: r.Status.Terminal(), Attempt: d.Attempt, Budget: true,
			Timeout: time.Duration(d.TimeoutSeconds) * time.Second,
		}
		if d.Budget != nil && d.Budget.Quota != nil {
			in.quota, in.resource = d.Budget.Quota, d.Budget.Resource
		}
		s.inputs[d.InputID] = in
		r.questions, r.budgets = append(r.questions, in), append(r.budgets, in)
	})
}

// expires reports whether the question is open, and not for ever.
func (in *Input) expires() bool { return !in.Over && in.Timeout > 0 }

// Expiring is the question about the budget that is open and will not stay so.
func (r *Run) Expiring() (inputID string, ok bool) {
	in := r.question()
	if in == nil || !in.expires() {
		return "", false
	}
	return in.ID, true
}

// stopped returns the report of the worker that stopped a job because the budget or a day's quota
// is used up; nil without one.
func (r *Run) stopped() *event.JobFailedData {
	for _, w := range r.works {
		if f := w.Failure; f != nil && (f.Code == string(fault.BudgetExceeded) || f.Code == string(fault.QuotaExceeded)) {
			return f
		}
	}
	return nil
}

// outOfQuota returns why the run ends if that is a day's quota, else nil.
func (r *Run) outOfQuota() *fault.Fault {
	if f := r.stopped(); f != nil && f.Code == string(fault.QuotaExceeded) {
		return fault.Newf(fault.QuotaExceeded, "%s", f.Message)
	}
	if in := r.question(); in != nil && in.quota != nil && (in.rejected() || in.Expired) {
		return fault.Newf(fault.QuotaExceeded, "The %s of the %s for %s are used up (%g of %g), and the run was not allowed to continue.",
			quotaNames[in.resource], in.quota.Scope, in.quota.Day, in.quota.Used, in.quota.Limit)
	}
	return nil
}

// Use is the consumption of the run, and the resource that is used up.
func (r *Run) Use() event.BudgetUse {
	use, _ := r.exceeded(true)
	return use
}

// BudgetQuestion is what people are asked.
func BudgetQuestion(use event.BudgetUse) string {
	return "The run has used up its budget: " + usedUp(use) + ". May it have as much once more?"
}

// BudgetFault says what of a budget is used up.
func BudgetFault(use event.BudgetUse) *fault.Fault {
	if use.Resource == "" {
		return fault.New(fault.BudgetExceeded)
	}
	return fault.Newf(fault.BudgetExceeded, "The run has used up its budget: %s. Ask for less at once, or ask the operator for a larger budget.", usedUp(use))
}

func usedUp(use event.BudgetUse) string {
	switch use.Resource {
	case event.BudgetTokens:
		return fmt.Sprintf("%d of %d tokens", use.Tokens, use.Limit.Tokens)
	case event.BudgetCost:
		return fmt.Sprintf("$%.4f of $%.4f", use.CostUSD, use.Limit.CostUSD)
	case event.BudgetToolCalls:
		return fmt.Sprintf("%d of %d tool calls", use.ToolCalls, use.Limit.ToolCalls)
	}
	return fmt.Sprintf("%d of %d seconds", use.Seconds, use.Limit.Seconds)
}

// workerSource is what workers write into their events as the source.
const workerSource = "waggle/worker"

// TimeLeft is how long workers may still be busy with the run before it has to be
// stopped, or people are asked; ok is false if nothing bounds it.
func (r *Run) TimeLeft() (left time.Duration, ok bool) {
	if r.Budget.Seconds <= 0 {
		return math.MaxInt64, false
	}
	return max(0, r.Budget.Times(r.granted()+1).Time()-r.worked), true
}

// Asks reports whether people are asked when the run has used up its budget.
func (r *Run) Asks() bool { return r.Budget.OnExceeded == event.BudgetAsk }
