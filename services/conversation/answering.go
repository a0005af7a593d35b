package conversation

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// answering decides on the answers of people.
type answering struct{ handler }

// respond accepts the answer to a question. The first one counts; later senders are told which.
func (h answering) respond() (decision.Decision, error) {
	var d command.AnswerQuestion
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	q := h.s.questions.byID[d.InputID]
	if d.InputID == "" && d.CallID != "" {
		q = h.s.questions.byCall[d.CallID]
	}
	if q == nil {
		return h.refuse(fault.New(fault.InputNotFound), &Question{ID: d.InputID})
	}
	if !h.mayAnswer(q) {
		return h.refuse(fault.Newf(fault.Forbidden, "Only the session's owner or an operator may answer this question."), &Question{ID: q.ID, CallID: q.CallID})
	}
	if q.Asking != nil {
		return h.respondAgent(q)
	}
	if f := q.takes(d); f != nil {
		return h.refuse(f, &Question{ID: q.ID, CallID: q.CallID})
	}
	if q.CallID != "" {
		return h.respondTool(d, q)
	}
	if q.Budget {
		return h.respondBudget(d, q)
	}
	return h.respondPlan(d, q)
}

// respondPlan takes the answer to the question whether a plan is carried out.
func (h answering) respondPlan(d command.AnswerQuestion, q *Question) (decision.Decision, error) {
	switch {
	case q.Answered != nil && q.Answered.CommandID == h.c.ID:
		return h.answeredAgain(q)
	case h.s.known.has(h.c.ID + ".invalid"):
		return h.invalid(d, q)
	case q.Answered != nil:
		return h.refuse(fault.New(fault.InputAnswered), q)
	case q.Expired, q.Over && h.s.queue.byID[q.RunID].Plan.Dropped == timedOut:
		return h.refuse(fault.New(fault.InputExpired), q)
	case q.Over:
		return h.refuse(fault.Newf(fault.InputNotFound, "The question is no longer open: its plan was cancelled."), q)
	}
	r := h.s.queue.byID[q.RunID]
	dir := h.director(r)
	return decision.Of(planner{dir}.answer(h.c, d, q)), nil
}

// answeredAgain decides on a repeat of the answer that counts. It answers a sender that asks for that.
func (h answering) answeredAgain(q *Question) (decision.Decision, error) {
	got, err := h.goOn()
	if h.c.Again != "" {
		got.Direct = *q.Answered
	}
	return got, err
}

// invalid decides on a repeat of an answer whose steps make no valid plan.
func (h answering) invalid(a command.AnswerQuestion, q *Question) (decision.Decision, error) {
	if r := h.s.queue.byID[q.RunID]; h.c.Again != "" && r != nil && r.Plan != nil {
		if _, err := (planner{h.director(r)}).edited(a); err != nil {
			return h.refuse(fault.Newf(fault.PlanInvalid, "%s", fault.From(err, "").Public()), &Question{ID: q.ID})
		}
	}
	return h.goOn()
}

// respondTool takes the answer to the question whether a tool call may run.
func (h answering) respondTool(d command.AnswerQuestion, q *Question) (decision.Decision, error) {
	shown := d.Digest
	if given(d.Arguments) {
		shown = d.Shown
	}
	switch {
	case q.Answered != nil && q.Answered.CommandID == h.c.ID:
		return h.answeredAgain(q)
	case d.CallID != "" && d.CallID != q.CallID, shown != "" && shown != q.Digest:
		return h.refuse(fault.Newf(fault.InputNotFound, "The answer does not match the call in the question. Read the question again."), &Question{ID: q.ID, CallID: q.CallID})
	case q.Answered != nil:
		return h.refuse(fault.New(fault.InputAnswered), q)
	case q.Over:
		return h.refuse(fault.Newf(fault.InputNotFound, "The question is no longer open: its run has ended."), q)
	}
	if q.Client {
		return h.respondClient(d, q)
	}
	if f := q.approvable(h.c, d, shown, h.rules); f != nil {
		return h.refuse(f, &Question{ID: q.ID, CallID: q.CallID})
	}
	data := event.InputAnsweredData{
		InputID: q.ID, RunID: q.RunID, ExecutionID: h.s.queue.byID[q.RunID].ExecutionID, CommandID: h.c.ID, Decision: event.DecisionApprove,
		Feedback: d.Feedback, By: h.c.Principal, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(h.now, q.Asked), CallID: q.CallID, Tool: q.Tool,
		Proof: h.c.Proof(),
	}
	switch {
	case !d.Approved:
		data.Decision = event.DecisionReject
	case given(d.Arguments):
		data.Decision, data.Arguments = event.DecisionModify, d.Arguments
	}
	return decision.Of(decision.Fact{ID: h.c.ID + ".answered", Data: data}), nil
}

// respondClient takes the outcome of a call that the client has carried out.
func (h answering) respondClient(d command.AnswerQuestion, q *Question) (decision.Decision, error) {
	data := event.InputAnsweredData{
		InputID: q.ID, RunID: q.RunID, ExecutionID: h.s.queue.byID[q.RunID].ExecutionID, CommandID: h.c.ID, Decision: event.DecisionReject,
		Feedback: d.Feedback, By: h.c.Principal, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(h.now, q.Asked), CallID: q.CallID, Tool: q.Tool,
		Scope: event.ScopeClientTool,
	}
	switch {
	case d.Approved && d.Result == nil:
		return h.refuse(fault.Newf(fault.InvalidField, "The client runs this tool. Answer with its result."), &Question{ID: q.ID, CallID: q.CallID})
	case d.Approved:
		data.Decision, data.Result, data.Files = event.DecisionApprove, *d.Result, d.Files
	}
	return decision.Of(decision.Fact{ID: h.c.ID + ".answered", Data: data}), nil
}

// respondBudget takes the answer to the question about a budget.
func (h answering) respondBudget(d command.AnswerQuestion, q *Question) (decision.Decision, error) {
	if q.Over {
		return h.answeredLate(q, "its run has ended")
	}
	data := event.InputAnsweredData{
		InputID: q.ID, RunID: q.RunID, ExecutionID: h.s.queue.byID[q.RunID].ExecutionID, CommandID: h.c.ID, Decision: event.DecisionApprove,
		Feedback: d.Feedback, By: h.c.Principal, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(h.now, q.Asked), Scope: event.ScopeBudget,
		Proof: h.c.Proof(),
	}
	if !d.Approved {
		data.Decision = event.DecisionReject
	}
	return decision.Of(decision.Fact{ID: h.c.ID + ".answered", Data: data}), nil
}

// respondAgent refuses an answer to an agent that cannot count. It changes nothing otherwise: see Handed.
func (h answering) respondAgent(q *Question) (decision.Decision, error) {
	if q.Over {
		return h.answeredLate(q, "its agent does not wait")
	}
	if len(h.c.Data) > maxToAgent {
		return h.refuse(fault.Newf(fault.InvalidField, "The answer is too long for an agent. Send less than 40 KB."), q)
	}
	return h.goOn()
}

// answeredLate refuses an answer to a question that is over, unless it is the one that counts.
func (h answering) answeredLate(q *Question, why string) (decision.Decision, error) {
	switch {
	case q.Answered != nil && q.Answered.CommandID == h.c.ID:
		return h.answeredAgain(q)
	case q.Answered != nil:
		return h.refuse(fault.New(fault.InputAnswered), q)
	case q.Expired:
		return h.refuse(fault.New(fault.InputExpired), q)
	}
	return h.refuse(fault.Newf(fault.InputNotFound, "The question is no longer open: %s.", why), q)
}

// refuse tells the sender why the command has no effect.
func (h answering) refuse(f *fault.Fault, q *Question) (decision.Decision, error) {
	data := event.CommandRefusedData{CommandID: h.c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field, InputID: q.ID}
	if f.Code == fault.InputNotFound {
		data.Field = "step_id"
	}
	if f.Code == fault.InputNotFound && h.s.Agent != nil {
		data.Field = "invocation_id"
	}
	if h.s.Agent != nil {
		data.AgentName = h.s.Agent.Name
	}
	if q.Answered != nil {
		data.AnsweredBy, data.Decision = orElse(q.Answered.By, q.Answered.ClientID), q.Answered.Decision
		data.AnsweredOn = q.Answered.ClientID
	}
	return decision.Decision{Facts: h.advance(), Direct: data}, nil
}

// mayAnswer reports whether the sender of the answer may give it.
func (h answering) mayAnswer(q *Question) bool {
	asker := ""
	if r := h.s.queue.byID[q.RunID]; r != nil {
		asker = r.Principal
	}
	return h.rules.Access.MayAnswer(h.c.Tenant, h.s.Owner(), asker, person(h.c))
}

// handed: see State.Handed.
func (h answering) handed() (m command.TaskMessage, ok bool) {
	var d command.AnswerQuestion
	if h.c.Verb != command.Answer || h.s.Deleted || !h.sees() || len(h.c.Data) > maxToAgent || h.c.Decode(&d) != nil {
		return m, false
	}
	q := h.s.questions.byID[d.InputID]
	if q == nil || q.Asking == nil || q.Over || !h.mayAnswer(q) {
		return m, false
	}
	told, err := d.ToAgent()
	if err != nil {
		return m, false
	}
	made := event.DecisionReject
	switch {
	case len(d.Message) > 0:
		made = event.DecisionAnswer
	case d.Approved:
		made = event.DecisionApprove
	}
	return command.TaskMessage{
		TaskID: q.Asking.Task, MessageType: command.TypeInputResponse, Message: told, Asked: q.Asking.Seq,
		Given: &event.GivenAnswer{InputID: q.ID, Decision: made, Feedback: d.Feedback, ClientID: d.ClientID, Segment: d.Segment},
	}, true
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
