package conversation

import (
	"fmt"
	"math"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// withBudget returns the rules for a command: a tenant may have a budget of its own.
func (r Rules) withBudget(c command.Command) Rules {
	if b, ok := r.Budgets[c.Tenant.String()]; ok {
		r.Budget = b
	}
	return r
}

// budget is what a run that is about to start may use up; nil: as much as it does.
func (r Rules) budget(spec event.RunSpec) *event.Budget {
	b := r.Budget
	if spec.Budget != nil {
		b = spec.Budget.Within(r.Budget)
	}
	if !b.Bounds() {
		return nil
	}
	return &b
}

// work adds the time since the event before to the run that workers are busy with.
func (s *State) work(now time.Time) {
	r := s.timed
	if r == nil || !r.busy() {
		return
	}
	r.worked += max(0, now.Sub(s.Updated))
}

// busy reports whether some worker has a unit of the run.
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

// granted is how often people have given the run its budget once more.
func (r *Run) granted() int {
	n := 0
	for _, in := range r.budgets {
		if in.Answered != nil && in.Answered.Decision == event.DecisionApprove {
			n++
		}
	}
	return n
}

// used is what the run has used up. tokens and cost are what is known of them.
func (r *Run) used() event.BudgetUse {
	var t tally
	for _, w := range r.works {
		t.add(w.tally)
	}
	n := r.granted()
	return event.BudgetUse{
		Tokens: t.input + t.output, CostUSD: t.cost, ToolCalls: t.tools, Seconds: int64(r.worked / time.Second),
		Limit: r.Budget.Times(n + 1), Granted: n,
	}
}

// exceeded returns what the run has used up of what it needs to go on: with the model,
// or with a call of a tool.
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

// afford returns the step if the run can afford it, else what is to be done instead.
func (s *State) afford(w *Work, st Step) Step {
	r := s.runs[w.RunID]
	if r == nil || !r.Budget.Bounds() || st.Kind != StepGenerate && st.Kind != StepCalls {
		return st
	}
	if st.Kind == StepCalls {
		begun, fresh := s.begun(st.Calls)
		if len(fresh) == 0 {
			return st
		}
		use, over := r.exceeded(true)
		if left := use.Limit.ToolCalls - use.ToolCalls; !over && use.Limit.ToolCalls > 0 && left < len(fresh) {
			st.Calls = append(begun, fresh[:left]...)
		}
		if !over || len(begun)+len(st.Ask) > 0 {
			if over {
				st.Calls = begun
			}
			return st
		}
		return s.halt(r, st, use)
	}
	if use, over := r.exceeded(false); over {
		return s.halt(r, st, use)
	}
	return st
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

// halt is what is to be done for a run that has used up its budget.
func (s *State) halt(r *Run, st Step, use event.BudgetUse) Step {
	out := Step{Kind: StepStop, Rounds: st.Rounds, Use: use}
	if r.Budget.OnExceeded != event.BudgetAsk {
		return out
	}
	in := r.question()
	switch {
	case in == nil || in.Answered != nil && in.Answered.Decision == event.DecisionApprove:
		out.Kind = StepAsk
	case !in.Over:
		out.Kind, out.Inputs = StepWait, []string{in.ID}
	}
	return out
}

// question is the newest question about the run's budget, nil if there was none.
func (r *Run) question() *Input {
	if len(r.budgets) == 0 {
		return nil
	}
	return r.budgets[len(r.budgets)-1]
}

// budgetAsked folds the question whether a run gets its budget once more.
func (s *State) budgetAsked(e event.Event, d event.InputRequestedData) error {
	return s.onRun(d.RunID, func(r *Run) {
		if s.inputs[d.InputID] != nil {
			return
		}
		in := &Input{
			ID: d.InputID, RunID: d.RunID, Asked: e.Time, Over: r.Status.Terminal(), Attempt: d.Attempt, Budget: true,
			Timeout: time.Duration(d.TimeoutSeconds) * time.Second,
		}
		s.inputs[d.InputID] = in
		r.questions, r.budgets = append(r.questions, in), append(r.budgets, in)
	})
}

// respondBudget takes the answer to the question about a budget.
func (s *State) respondBudget(c command.Command, d command.RespondInput, in *Input, now time.Time, rules Rules) (Decision, error) {
	switch {
	case in.Answered != nil && in.Answered.CommandID == c.ID:
		return s.goOn(c, now, rules)
	case in.Answered != nil:
		return s.refuse(c, fault.New(fault.InputAnswered), in, now, rules)
	case in.Expired:
		return s.refuse(c, fault.New(fault.InputExpired), in, now, rules)
	case in.Over:
		return s.refuse(c, fault.Newf(fault.InputNotFound, "The question is not open any more: its run has ended."), in, now, rules)
	}
	data := event.InputAnsweredData{
		InputID: in.ID, RunID: in.RunID, ExecutionID: s.runs[in.RunID].ExecutionID, CommandID: c.ID, Decision: event.DecisionApprove,
		Feedback: d.Feedback, By: c.Principal, ClientID: d.ClientID, ElapsedMS: since(now, in.Asked), Scope: event.ScopeBudget,
	}
	if !d.Approved {
		data.Decision = event.DecisionReject
	}
	return facts(Fact{c.ID + ".answered", data}), nil
}

// overBudget ends a run that gets no more than it had: nobody wants to give it more, or
// a unit of it was stopped. A question that nobody has answered in time expires first.
func (s *State) overBudget(r *Run, now time.Time) []Fact {
	in := r.question()
	switch {
	case in != nil && in.expires() && !now.Before(in.Asked.Add(in.Timeout)):
		return []Fact{{in.ID + ".expired", event.InputExpiredData{
			InputID: in.ID, RunID: r.ID, ExecutionID: r.ExecutionID,
			TimeoutSeconds: int(in.Timeout / time.Second), ElapsedMS: since(now, in.Asked),
		}}}
	case in != nil && (in.rejected() || in.Expired), r.stopped():
		return s.failBudget(r, now)
	}
	return nil
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

// stopped reports whether a worker has stopped a unit because the budget is used up.
func (r *Run) stopped() bool {
	for _, w := range r.works {
		if w.Failure != nil && w.Failure.Code == string(fault.BudgetExceeded) {
			return true
		}
	}
	return false
}

func (s *State) failBudget(r *Run, now time.Time) []Fact {
	var list []Fact
	d := director{s: s, r: r, p: r.Pipeline, now: now}
	if r.Pipeline != nil {
		list = d.stop(command.Command{ID: r.ID + ".budget"})
	} else {
		for _, w := range r.works {
			list = append(list, discards(w)...)
		}
	}
	use, _ := r.exceeded(true)
	entry := fault.Lookup(fault.BudgetExceeded)
	failed := d.runFailed(entry, BudgetFault(use).Message, "")
	if data, ok := failed.Data.(event.RunFailedData); ok {
		data.Budget = &use
		failed.Data = data
	}
	return append(list, failed)
}

// Use is what the run has used up, and of which resource all of it.
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

// TimeLeft is how long workers may still be busy with the run before it has to be
// stopped; ok is false if nothing bounds it, or people are asked first.
func (r *Run) TimeLeft() (left time.Duration, ok bool) {
	if r.Budget.Seconds <= 0 || r.Budget.OnExceeded == event.BudgetAsk {
		return math.MaxInt64, false
	}
	return max(0, r.Budget.Times(r.granted()+1).Time()-r.worked), true
}
