package conversation

import (
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// ActionKind is the kind of an action.
type ActionKind int

// The actions of a worker, in the order in which they are checked for.
const (
	ActionNone     ActionKind = iota // it no longer needs a worker
	ActionDiscard                    // messages of a dead attempt are still open
	ActionCalls                      // tool calls of the last message have no outcome, and some may run or be asked for
	ActionWait                       // all of them wait for people
	ActionGenerate                   // request the next message of the model
	ActionFinish                     // the last message is the answer
	ActionAsk                        // ask people whether to renew the run's budget
	ActionStop                       // the run's budget is used up
)

// Action is what a worker does next for a job.
type Action struct {
	Kind      ActionKind
	Discard   []string         // ActionDiscard: message ids
	Calls     []event.ToolCall // ActionCalls: those without an outcome that may run now, in the model's order
	Ask       []event.ToolCall // ActionCalls: those that people have to be asked about first
	Questions []string         // ActionCalls, ActionWait: the questions that are open
	Answer    Message          // StepFinish
	Rounds    int              // messages of the model so far

	Use event.BudgetUse // ActionAsk, ActionStop: the resource that is used up
}

// pending finds what is left to do of a job.
type pending struct {
	s *State
	r *Run
	j *Job
}

func (p pending) next() Action {
	st := Action{Rounds: len(p.j.Messages)}
	if len(p.j.Open) > 0 {
		st.Kind, st.Discard = ActionDiscard, append([]string(nil), p.j.Open...)
		return st
	}
	if len(p.j.Messages) == 0 {
		st.Kind = ActionGenerate
		return p.afford(st)
	}
	last := p.j.Messages[len(p.j.Messages)-1]
	if last.stopped() && last.Attempt == p.j.Attempt { // the end of the job follows
		return Action{Kind: ActionNone}
	}
	if last.stopped() { // the process that stopped it died before that
		st.Kind = ActionGenerate
		return p.afford(st)
	}
	if len(last.ToolCalls) == 0 {
		st.Kind, st.Answer = ActionFinish, last
		return st
	}
	if calls := p.s.calls.unsettled(last); len(calls) > 0 {
		rounds := st.Rounds
		st = p.sort(calls)
		st.Rounds = rounds
		return p.afford(st)
	}
	st.Kind = ActionGenerate
	return p.afford(st)
}

// sort splits the calls without an outcome into those that may run, those that need a question, and
// those whose question is open. A call that has begun may run: the worker that resumes it decides
// about it.
func (p pending) sort(calls []event.ToolCall) (st Action) {
	for _, tc := range calls {
		a, asked := p.s.questions.approval(tc.ID)
		switch {
		case !p.s.calls.must[tc.ID], p.s.calls.byID[tc.ID] != nil, a.Allowed():
			st.Calls = append(st.Calls, tc)
		case !asked:
			st.Ask = append(st.Ask, tc)
		default:
			st.Questions = append(st.Questions, a.QuestionID)
		}
	}
	st.Kind = ActionCalls
	if len(st.Calls)+len(st.Ask) == 0 {
		st.Kind = ActionWait
	}
	return st
}

// afford returns the action if the budget allows it, else the action in its place.
func (p pending) afford(st Action) Action {
	if st.Kind != ActionGenerate && st.Kind != ActionCalls {
		return st
	}
	if p.r.Asking() && p.r.question().Quota != nil {
		return p.hold(st)
	}
	if !p.r.Budget.Bounds() {
		return st
	}
	if st.Kind == ActionCalls {
		return p.affordCalls(st)
	}
	if use, over := p.r.exceeded(false); over {
		return p.halt(st, use)
	}
	return st
}

// affordCalls is afford for calls of tools: those that have begun are finished, and as many others are made as the budget
// allows.
func (p pending) affordCalls(st Action) Action {
	begun, fresh := p.s.calls.begun(st.Calls)
	if len(fresh) == 0 {
		return st
	}
	use, over := p.r.exceeded(true)
	if !over {
		if left := use.Limit.ToolCalls - use.ToolCalls; use.Limit.ToolCalls > 0 && left < len(fresh) {
			st.Calls = append(begun, fresh[:left]...)
		}
		return st
	}
	if len(begun)+len(st.Ask) == 0 {
		return p.halt(st, use)
	}
	st.Calls = begun
	return st
}

// hold returns the action while people are asked about a daily quota: it finishes calls
// that have begun.
func (p pending) hold(st Action) Action {
	if begun, _ := p.s.calls.begun(st.Calls); len(begun) > 0 {
		return Action{Kind: ActionCalls, Rounds: st.Rounds, Calls: begun, Questions: st.Questions}
	}
	return Action{Kind: ActionWait, Rounds: st.Rounds, Questions: []string{p.r.question().ID}}
}

// halt returns the action for a run that has used up its budget.
func (p pending) halt(st Action, use event.BudgetUse) Action {
	out := Action{Kind: ActionStop, Rounds: st.Rounds, Use: use}
	if p.r.Budget.OnExceeded != event.BudgetAsk {
		return out
	}
	q := p.r.question()
	switch {
	case q == nil || q.approved():
		out.Kind = ActionAsk
	case !q.Over:
		out.Kind, out.Questions = ActionWait, []string{q.ID}
	}
	return out
}
