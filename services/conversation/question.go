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
		if in := s.questions.byID[d.InputID]; in != nil {
			in.Over, in.Expired = true, !d.Withdrawn
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
	in := &Question{ID: d.InputID, RunID: d.RunID, Asked: e.Time}
	if d.Scope == event.ScopeTool || d.Scope == event.ScopeClientTool {
		in.CallID, in.Tool, in.Digest, in.Shown, in.Attempt = d.CallID, d.Tool, d.Digest, d.Definition, d.Attempt
		in.Client, in.Schema = d.Scope == event.ScopeClientTool, string(d.Parameters)
		return in
	}
	in.Timeout = time.Duration(d.TimeoutSeconds) * time.Second
	switch d.Scope {
	case event.ScopeAgent:
		in.Asking = &Asking{Job: d.Job(d.RunID), Task: d.TaskID, Seq: d.TaskSeq}
	case event.ScopeBudget:
		in.Budget, in.Attempt = true, d.Attempt
		if d.Budget != nil && d.Budget.Quota != nil {
			in.Quota, in.Resource = d.Budget.Quota, d.Budget.Resource
		}
	default:
		in.PlanID = d.PlanID
	}
	return in
}

// ofPlan reports whether the question is if a plan is carried out.
func (in *Question) ofPlan() bool { return in.CallID == "" && !in.Budget && in.Asking == nil }

func (in *Question) rejected() bool {
	return in.Answered != nil && in.Answered.Decision == event.DecisionReject
}

func (in *Question) approved() bool {
	return in.Answered != nil && in.Answered.Decision == event.DecisionApprove
}

// expires reports whether the question is open, and not for ever.
func (in *Question) expires() bool { return !in.Over && in.Timeout > 0 }

// takes returns the fault of an answer with members that are for other questions.
func (in *Question) takes(d command.AnswerQuestion) *fault.Fault {
	switch {
	case len(d.Message) > 0:
		return fault.Newf(fault.InvalidField, "Only questions of agents accept a message. Send a decision.")
	case (in.CallID != "" || in.Budget) && (given(d.Steps) || given(d.Modified)):
		return fault.Newf(fault.InvalidField, "Only an answer about a plan may change its steps. The question stays open.")
	case (in.CallID == "" || in.Client) && given(d.Arguments):
		return fault.Newf(fault.InvalidField, "Only an answer about a tool call may change arguments. The question stays open.")
	}
	return nil
}

// approvable returns the fault of an answer that approves a call which is not exactly known, or may not run. shown is the
// digest of the call that the person has seen.
func (in *Question) approvable(c command.Command, d command.AnswerQuestion, shown string, rules Rules) *fault.Fault {
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
		if f := in.fits(d, rules); f != nil {
			return f
		}
	}
	if p := c.Proof(); p != nil && len(p.Data) == 0 {
		return fault.Newf(fault.InvalidField, "The answer is too long for an approval. Send less than 48 KB of arguments and feedback.")
	}
	return nil
}

// fits returns the fault of arguments that the tool does not take.
func (in *Question) fits(d command.AnswerQuestion, rules Rules) *fault.Fault {
	wrong := func(text string, args ...any) *fault.Fault {
		return fault.Newf(fault.InvalidField, text, args...).At("arguments")
	}
	if in.Schema == "" || rules.Fits == nil {
		return wrong("The arguments of this call cannot be changed. Approve it as it is, or reject it and say what should be different.")
	}
	if f := rules.Fits(json.RawMessage(in.Schema), d.Arguments); f != nil {
		return wrong("%s The question stays open.", f.Public())
	}
	if d.Digest != event.CallDigest(in.Tool, d.Arguments) {
		return fault.Newf(fault.InputNotFound, "The approval does not match its arguments. Read the question again.")
	}
	return nil
}

// questions holds the questions of the runs that a state keeps.
type questions struct {
	byID   map[string]*Question
	byCall map[string]*Question // those about calls of tools
}

func (q *questions) add(in *Question) {
	if in.ID != "" {
		q.byID[in.ID] = in
	}
	if in.CallID != "" {
		q.byCall[in.CallID] = in
	}
}

// has reports whether the question was asked. A call has at most one.
func (q *questions) has(in *Question) bool {
	return q.byID[in.ID] != nil || in.CallID != "" && q.byCall[in.CallID] != nil
}

func (q *questions) forget(r *Run) {
	for _, in := range r.Questions {
		delete(q.byID, in.ID)
		delete(q.byCall, in.CallID)
	}
}

// approval returns the question about the call; ok is false if people were not asked.
func (q *questions) approval(callID string) (a Approval, ok bool) {
	in := q.byCall[callID]
	if in == nil {
		return Approval{}, false
	}
	a = Approval{QuestionID: in.ID, Digest: in.Digest, Shown: in.Shown, Over: in.Over}
	if in.Answered != nil {
		a.Decision, a.Proof = in.Answered.Decision, in.Answered.Proof
	}
	if a.Decision == event.DecisionModify {
		a.Digest = event.CallDigest(in.Tool, in.Answered.Arguments)
	}
	return a, true
}

// asked folds a question.
func asked(s *State, e event.Event, d event.InputRequestedData) error {
	in := newQuestion(e, d)
	if in.ofPlan() {
		p, err := s.planOf(d.RunID)
		if err != nil {
			return err
		}
		p.Phase = Confirming
	}
	r, err := s.runOf(d.RunID)
	if err != nil || !in.ofPlan() && s.questions.has(in) {
		return err
	}
	in.Over = r.Status.Terminal() && !in.ofPlan()
	s.questions.add(in)
	r.ask(in)
	return nil
}

// questionAnswered folds the answer that counts.
func questionAnswered(s *State, _ event.Event, d event.InputAnsweredData) error {
	in := s.questions.byID[d.InputID]
	if in == nil || in.ofPlan() {
		return planAnswered(s, in, d)
	}
	if in.Over {
		return nil
	}
	in.Over = true
	if in.CallID == "" {
		d.Message = nil // the agent has it
		in.Answered = &d
		return nil
	}
	in.Answered, in.Schema = &d, ""
	if d.Decision == event.DecisionModify {
		s.Run(in.RunID).change(in.CallID, d.Arguments)
	}
	s.calls.decided(in, d)
	return nil
}

func planAnswered(s *State, in *Question, d event.InputAnsweredData) error {
	p, err := s.planOf(d.RunID)
	switch {
	case err != nil:
		return err
	case in == nil:
		return fmt.Errorf("question %q was never asked", d.InputID)
	case in.Over:
		return nil
	}
	in.Answered, in.Over = &d, true
	p.answered(d)
	return nil
}
