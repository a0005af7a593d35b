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
	in := h.s.questions.byID[d.InputID]
	if d.InputID == "" && d.CallID != "" {
		in = h.s.questions.byCall[d.CallID]
	}
	if in == nil {
		return h.refuse(fault.New(fault.InputNotFound), &Question{ID: d.InputID})
	}
	if !h.mayAnswer(in) {
		return h.refuse(fault.Newf(fault.Forbidden, "Only the session's owner or an operator may answer this question."), &Question{ID: in.ID, CallID: in.CallID})
	}
	if in.Asking != nil {
		return h.respondAgent(in)
	}
	if f := in.takes(d); f != nil {
		return h.refuse(f, &Question{ID: in.ID, CallID: in.CallID})
	}
	if in.CallID != "" {
		return h.respondTool(d, in)
	}
	if in.Budget {
		return h.respondBudget(d, in)
	}
	return h.respondPlan(d, in)
}

// respondPlan takes the answer to the question whether a plan is carried out.
func (h answering) respondPlan(d command.AnswerQuestion, in *Question) (decision.Decision, error) {
	switch {
	case in.Answered != nil && in.Answered.CommandID == h.c.ID:
		return h.answeredAgain(in)
	case h.s.known.Has(h.c.ID + ".invalid"):
		return h.invalid(d, in)
	case in.Answered != nil:
		return h.refuse(fault.New(fault.InputAnswered), in)
	case in.Expired, in.Over && h.s.queue.byID[in.RunID].Plan.Dropped == timedOut:
		return h.refuse(fault.New(fault.InputExpired), in)
	case in.Over:
		return h.refuse(fault.Newf(fault.InputNotFound, "The question is no longer open: its plan was cancelled."), in)
	}
	r := h.s.queue.byID[in.RunID]
	dir := h.director(r)
	return decision.Of(planner{dir}.answer(h.c, d, in)), nil
}

// answeredAgain decides about the answer that counts, when it comes again. It answers a sender that wants it to.
func (h answering) answeredAgain(in *Question) (decision.Decision, error) {
	got, err := h.goOn()
	if h.c.Again != "" {
		got.Direct = *in.Answered
	}
	return got, err
}

// invalid decides about an answer whose steps make no plan, when it comes again.
func (h answering) invalid(a command.AnswerQuestion, in *Question) (decision.Decision, error) {
	if r := h.s.queue.byID[in.RunID]; h.c.Again != "" && r != nil && r.Plan != nil {
		if _, err := (planner{h.director(r)}).edited(a); err != nil {
			return h.refuse(fault.Newf(fault.PlanInvalid, "%s", fault.From(err, "").Public()), &Question{ID: in.ID})
		}
	}
	return h.goOn()
}

// respondTool takes the answer to the question whether a tool call may run.
func (h answering) respondTool(d command.AnswerQuestion, in *Question) (decision.Decision, error) {
	shown := d.Digest
	if given(d.Arguments) {
		shown = d.Shown
	}
	switch {
	case in.Answered != nil && in.Answered.CommandID == h.c.ID:
		return h.answeredAgain(in)
	case d.CallID != "" && d.CallID != in.CallID, shown != "" && shown != in.Digest:
		return h.refuse(fault.Newf(fault.InputNotFound, "The answer does not match the call in the question. Read the question again."), &Question{ID: in.ID, CallID: in.CallID})
	case in.Answered != nil:
		return h.refuse(fault.New(fault.InputAnswered), in)
	case in.Over:
		return h.refuse(fault.Newf(fault.InputNotFound, "The question is no longer open: its run has ended."), in)
	}
	if in.Client {
		return h.respondClient(d, in)
	}
	if f := in.approvable(h.c, d, shown, h.rules); f != nil {
		return h.refuse(f, &Question{ID: in.ID, CallID: in.CallID})
	}
	data := event.InputAnsweredData{
		InputID: in.ID, RunID: in.RunID, ExecutionID: h.s.queue.byID[in.RunID].ExecutionID, CommandID: h.c.ID, Decision: event.DecisionApprove,
		Feedback: d.Feedback, By: h.c.Principal, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(h.now, in.Asked), CallID: in.CallID, Tool: in.Tool,
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
func (h answering) respondClient(d command.AnswerQuestion, in *Question) (decision.Decision, error) {
	data := event.InputAnsweredData{
		InputID: in.ID, RunID: in.RunID, ExecutionID: h.s.queue.byID[in.RunID].ExecutionID, CommandID: h.c.ID, Decision: event.DecisionReject,
		Feedback: d.Feedback, By: h.c.Principal, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(h.now, in.Asked), CallID: in.CallID, Tool: in.Tool,
		Scope: event.ScopeClientTool,
	}
	switch {
	case d.Approved && d.Result == nil:
		return h.refuse(fault.Newf(fault.InvalidField, "The client runs this tool. Answer with its result."), &Question{ID: in.ID, CallID: in.CallID})
	case d.Approved:
		data.Decision, data.Result, data.Files = event.DecisionApprove, *d.Result, d.Files
	}
	return decision.Of(decision.Fact{ID: h.c.ID + ".answered", Data: data}), nil
}

// respondBudget takes the answer to the question about a budget.
func (h answering) respondBudget(d command.AnswerQuestion, in *Question) (decision.Decision, error) {
	if in.Over {
		return h.answeredLate(in, "its run has ended")
	}
	data := event.InputAnsweredData{
		InputID: in.ID, RunID: in.RunID, ExecutionID: h.s.queue.byID[in.RunID].ExecutionID, CommandID: h.c.ID, Decision: event.DecisionApprove,
		Feedback: d.Feedback, By: h.c.Principal, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(h.now, in.Asked), Scope: event.ScopeBudget,
		Proof: h.c.Proof(),
	}
	if !d.Approved {
		data.Decision = event.DecisionReject
	}
	return decision.Of(decision.Fact{ID: h.c.ID + ".answered", Data: data}), nil
}

// respondAgent refuses an answer to an agent that cannot count. Any other one changes nothing here: see Handed.
func (h answering) respondAgent(in *Question) (decision.Decision, error) {
	if in.Over {
		return h.answeredLate(in, "its agent does not wait")
	}
	if len(h.c.Data) > maxToAgent {
		return h.refuse(fault.Newf(fault.InvalidField, "The answer is too long for an agent. Send less than 40 KB."), in)
	}
	return h.goOn()
}

// answeredLate refuses an answer to a question that is over, unless it is the one that counts.
func (h answering) answeredLate(in *Question, why string) (decision.Decision, error) {
	switch {
	case in.Answered != nil && in.Answered.CommandID == h.c.ID:
		return h.answeredAgain(in)
	case in.Answered != nil:
		return h.refuse(fault.New(fault.InputAnswered), in)
	case in.Expired:
		return h.refuse(fault.New(fault.InputExpired), in)
	}
	return h.refuse(fault.Newf(fault.InputNotFound, "The question is no longer open: %s.", why), in)
}

// refuse tells the sender why the command has no effect.
func (h answering) refuse(f *fault.Fault, in *Question) (decision.Decision, error) {
	data := event.CommandRefusedData{CommandID: h.c.ID, Code: string(f.Code), Message: f.Message, Field: f.Field, InputID: in.ID}
	if f.Code == fault.InputNotFound {
		data.Field = "step_id"
	}
	if f.Code == fault.InputNotFound && h.s.Agent != nil {
		data.Field = "invocation_id"
	}
	if h.s.Agent != nil {
		data.AgentName = h.s.Agent.Name
	}
	if in.Answered != nil {
		data.AnsweredBy, data.Decision = orElse(in.Answered.By, in.Answered.ClientID), in.Answered.Decision
		data.AnsweredOn = in.Answered.ClientID
	}
	return decision.Decision{Facts: h.advance(), Direct: data}, nil
}

// mayAnswer reports whether the sender of the answer may give it.
func (h answering) mayAnswer(in *Question) bool {
	asker := ""
	if r := h.s.queue.byID[in.RunID]; r != nil {
		asker = r.Principal
	}
	return h.rules.Access.MayAnswer(h.c.Tenant, h.s.Owner(), asker, person(h.c))
}

// Handed returns the message that hands an answer on to the agent that has asked: the log of its task takes the first one, and
// reports it with command.CloseQuestion. ok is false for any other command.
func (s *State) Handed(c command.Command, rules Rules) (m command.TaskMessage, ok bool) {
	var d command.AnswerQuestion
	h := answering{handler{s: s, c: c, rules: rules}}
	if c.Verb != command.Answer || s.Deleted || !h.sees() || len(c.Data) > maxToAgent || c.Decode(&d) != nil {
		return m, false
	}
	in := s.questions.byID[d.InputID]
	if in == nil || in.Asking == nil || in.Over || !h.mayAnswer(in) {
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
		TaskID: in.Asking.Task, MessageType: command.TypeInputResponse, Message: told, Asked: in.Asking.Seq,
		Given: &event.GivenAnswer{InputID: in.ID, Decision: made, Feedback: d.Feedback, ClientID: d.ClientID, Segment: d.Segment},
	}, true
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
