package conversation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// questionFolds are the effects of events about questions to people.
var questionFolds = map[event.Type]effect{
	event.InputRequested: with(asked),
	event.InputAnswered:  with(questionAnswered),
	event.InputExpired: with(func(s *State, _ event.Event, d event.InputExpiredData) error {
		if q := s.questions.byID[d.InputID]; q != nil {
			q.Over, q.Expired = true, !d.Withdrawn
		}
		return nil
	}),
}

// Question is a question to people.
type Question struct {
	ID       string
	RunID    string
	Asked    time.Time
	Timeout  time.Duration
	Answered *event.InputAnsweredData
	Expired  bool
	PlanID   string
	Over     bool // answered, expired or withdrawn

	CallID  string // it is about this tool call; empty: about a plan
	Tool    string
	Digest  string // of the call as it was shown
	Shown   string `json:",omitempty"` // digest of the tool as it was shown; empty: not known
	Schema  string `json:",omitempty"` // of the tool's arguments, while an answer may change them; empty: it may not
	Attempt int    // the worker's claim that asked
	Client  bool   // the client carries the call out
	Budget  bool   // it is about the budget of the run, or a day's quota

	Asking *Asking `json:",omitempty"` // an agent of the swarm asks; nil: none

	Quota    *event.QuotaUse `json:",omitempty"` // of a question about a day's quota
	Resource string          `json:",omitempty"` // of the quota
}

// Asking is a question of an agent of the swarm, as the log of its task has it.
type Asking struct {
	Job  string // the job
	Task string // the log of the swarm's task
	Seq  uint64 // of the question in that log
}

// newQuestion returns a question that the log has.
func newQuestion(e event.Event, d event.InputRequestedData) *Question {
	q := &Question{ID: d.InputID, RunID: d.RunID, Asked: e.Time}
	if d.Scope == event.ScopeTool || d.Scope == event.ScopeClientTool {
		q.CallID, q.Tool, q.Digest, q.Shown, q.Attempt = d.CallID, d.Tool, d.Digest, d.Definition, d.Attempt
		q.Client, q.Schema = d.Scope == event.ScopeClientTool, string(d.Parameters)
		return q
	}
	q.Timeout = time.Duration(d.TimeoutSeconds) * time.Second
	switch d.Scope {
	case event.ScopeAgent:
		q.Asking = &Asking{Job: d.Job(d.RunID), Task: d.TaskID, Seq: d.TaskSeq}
	case event.ScopeBudget:
		q.Budget, q.Attempt = true, d.Attempt
		if d.Budget != nil && d.Budget.Quota != nil {
			q.Quota, q.Resource = d.Budget.Quota, d.Budget.Resource
		}
	default:
		q.PlanID = d.PlanID
	}
	return q
}

// ofPlan reports whether the question asks if a plan is carried out.
func (q *Question) ofPlan() bool { return q.CallID == "" && !q.Budget && q.Asking == nil }

func (q *Question) rejected() bool {
	return q.Answered != nil && q.Answered.Decision == event.DecisionReject
}

func (q *Question) approved() bool {
	return q.Answered != nil && q.Answered.Decision == event.DecisionApprove
}

// expires reports whether the question is open, and not for ever.
func (q *Question) expires() bool { return !q.Over && q.Timeout > 0 }

// takes returns the fault of an answer with members that are for other questions.
func (q *Question) takes(d command.AnswerQuestion) *fault.Fault {
	switch {
	case len(d.Message) > 0:
		return fault.Newf(fault.InvalidField, "Only questions of agents accept a message. Send a decision.")
	case (q.CallID != "" || q.Budget) && (given(d.Steps) || given(d.Modified)):
		return fault.Newf(fault.InvalidField, "Only an answer about a plan may change its steps. The question stays open.")
	case (q.CallID == "" || q.Client) && given(d.Arguments):
		return fault.Newf(fault.InvalidField, "Only an answer about a tool call may change arguments. The question stays open.")
	}
	return nil
}

// approvable returns the fault of an answer that approves a call which is not exactly known, or may not run. shown is the
// digest of the call that the person has seen.
func (q *Question) approvable(c command.Command, d command.AnswerQuestion, shown string, rules Rules) *fault.Fault {
	if !d.Approved {
		if given(d.Arguments) {
			return fault.Newf(fault.InvalidField, "An answer that rejects a call must not change arguments. The question stays open.").At("arguments")
		}
		return nil
	}
	if shown == "" {
		return fault.Newf(fault.InputNotFound, "The approval does not name its call. Read the question again.")
	}
	if given(d.Arguments) {
		if f := q.fits(d, rules); f != nil {
			return f
		}
	}
	if p := c.Proof(); p != nil && len(p.Data) == 0 {
		return fault.Newf(fault.InvalidField, "The answer is too long for an approval. Send less than 48 KB of arguments and feedback.")
	}
	return nil
}

// fits returns the fault of arguments that the tool does not take.
func (q *Question) fits(d command.AnswerQuestion, rules Rules) *fault.Fault {
	wrong := func(text string, args ...any) *fault.Fault {
		return fault.Newf(fault.InvalidField, text, args...).At("arguments")
	}
	if q.Schema == "" || rules.Fits == nil {
		return wrong("The arguments of this call cannot be changed. Approve it as it is, or reject it and say what should be different.")
	}
	if f := rules.Fits(json.RawMessage(q.Schema), d.Arguments); f != nil {
		return wrong("%s The question stays open.", f.Public())
	}
	if d.Digest != event.CallDigest(q.Tool, d.Arguments) {
		return fault.Newf(fault.InputNotFound, "The approval does not match its arguments. Read the question again.")
	}
	return nil
}

// questions holds the questions of the runs that a state keeps.
type questions struct {
	byID   map[string]*Question
	byCall map[string]*Question // those about calls of tools
}

func (qs *questions) add(q *Question) {
	if q.ID != "" {
		qs.byID[q.ID] = q
	}
	if q.CallID != "" {
		qs.byCall[q.CallID] = q
	}
}

// has reports whether the question was asked. A call has at most one.
func (qs *questions) has(q *Question) bool {
	return qs.byID[q.ID] != nil || q.CallID != "" && qs.byCall[q.CallID] != nil
}

func (qs *questions) forget(r *Run) {
	for _, q := range r.Questions {
		delete(qs.byID, q.ID)
		delete(qs.byCall, q.CallID)
	}
}

// approval returns the question about the call; ok is false if people were not asked.
func (qs *questions) approval(callID string) (a Approval, ok bool) {
	q := qs.byCall[callID]
	if q == nil {
		return Approval{}, false
	}
	a = Approval{QuestionID: q.ID, Digest: q.Digest, Shown: q.Shown, Over: q.Over}
	if q.Answered != nil {
		a.Decision, a.Proof = q.Answered.Decision, q.Answered.Proof
	}
	if a.Decision == event.DecisionModify {
		a.Digest = event.CallDigest(q.Tool, q.Answered.Arguments)
	}
	return a, true
}

// asked folds a question.
func asked(s *State, e event.Event, d event.InputRequestedData) error {
	q := newQuestion(e, d)
	if q.ofPlan() {
		p, err := s.planOf(d.RunID)
		if err != nil {
			return err
		}
		p.Phase = Confirming
	}
	r, err := s.runOf(d.RunID)
	if err != nil || !q.ofPlan() && s.questions.has(q) {
		return err
	}
	q.Over = r.Status.Terminal() && !q.ofPlan()
	s.questions.add(q)
	r.ask(q)
	return nil
}

// questionAnswered folds the answer that counts.
func questionAnswered(s *State, _ event.Event, d event.InputAnsweredData) error {
	q := s.questions.byID[d.InputID]
	if q == nil || q.ofPlan() {
		return planAnswered(s, q, d)
	}
	if q.Over {
		return nil
	}
	q.Over = true
	if q.CallID == "" {
		d.Message = nil // the agent has it
		q.Answered = &d
		return nil
	}
	q.Answered, q.Schema = &d, ""
	if d.Decision == event.DecisionModify {
		s.Run(q.RunID).change(q.CallID, d.Arguments)
	}
	s.calls.decided(q, d)
	return nil
}

func planAnswered(s *State, q *Question, d event.InputAnsweredData) error {
	p, err := s.planOf(d.RunID)
	switch {
	case err != nil:
		return err
	case q == nil:
		return fmt.Errorf("question %q was never asked", d.InputID)
	case q.Over:
		return nil
	}
	q.Answered, q.Over = &d, true
	p.answered(d)
	return nil
}
