package conversation

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// memberVerbs holds how each command to a member of a team is decided.
var memberVerbs = map[id.Name]decide{
	command.CreateMember:   (*State).create,
	command.SendMessage:    (*State).receive,
	command.Cancel:         (*State).cancel,
	command.Answer:         (*State).respond,
	command.NoteTodos:      (*State).noteTodos,
	command.CloseMember:    (*State).close,
	command.SettleJob:      (*State).goOn,
	command.AbandonJob:     (*State).workDead,
	command.AssignJob:      (*State).workTaken,
	command.FinishJob:      (*State).workDone,
	command.AskPeople:      (*State).agentAsks,
	command.CloseQuestion:  (*State).closeQuestion,
	command.CheckDeadlines: (*State).goOn,
	command.Resume:         (*State).goOn,
}

// create opens the log of a member of a team, once.
func (s *State) create(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	if !s.Created.IsZero() {
		return s.goOn(c, now, rules)
	}
	var d event.MemberCreatedData
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	d.Principal = orElse(d.Principal, c.Principal)
	return decision.Of(decision.Fact{ID: c.ID + ".created", Data: d}), nil
}

// noteTodos replaces the agent's list of things to do. One call does it once.
func (s *State) noteTodos(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d event.TodosUpdatedData
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	eventID := orElse(d.CallID, c.ID) + ".todos"
	switch {
	case s.Created.IsZero():
		return decision.Decision{}, fault.New(fault.AgentNotFound)
	case s.Closed, s.known.Has(eventID):
		return s.goOn(c, now, rules)
	}
	return decision.Of(decision.Fact{ID: eventID, Data: d}), nil
}

// respondTool takes the answer to the question whether a tool call may run.
func (s *State) respondTool(c command.Command, d command.AnswerQuestion, in *Input, now time.Time, rules Rules) (decision.Decision, error) {
	shown := d.Digest
	if given(d.Arguments) {
		shown = d.Shown
	}
	switch {
	case in.Answered != nil && in.Answered.CommandID == c.ID:
		return s.answeredAgain(c, in, now, rules)
	case d.CallID != "" && d.CallID != in.CallID, shown != "" && shown != in.Digest:
		return s.refuse(c, fault.Newf(fault.InputNotFound, "The answer is about another call than the question. Look at the question again."), &Input{ID: in.ID, CallID: in.CallID}, now, rules)
	case in.Answered != nil:
		return s.refuse(c, fault.New(fault.InputAnswered), in, now, rules)
	case in.Over:
		return s.refuse(c, fault.Newf(fault.InputNotFound, "The question is not open any more: its run has ended."), in, now, rules)
	}
	if in.Client {
		return s.respondClient(c, d, in, now, rules)
	}
	if f := in.approvable(c, d, shown, rules); f != nil {
		return s.refuse(c, f, &Input{ID: in.ID, CallID: in.CallID}, now, rules)
	}
	data := event.InputAnsweredData{
		InputID: in.ID, RunID: in.RunID, ExecutionID: s.runs[in.RunID].ExecutionID, CommandID: c.ID, Decision: event.DecisionApprove,
		Feedback: d.Feedback, By: c.Principal, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(now, in.Asked), CallID: in.CallID, Tool: in.Tool,
		Proof: c.Proof(),
	}
	switch {
	case !d.Approved:
		data.Decision = event.DecisionReject
	case given(d.Arguments):
		data.Decision, data.Arguments = event.DecisionModify, d.Arguments
	}
	return decision.Of(decision.Fact{ID: c.ID + ".answered", Data: data}), nil
}

// approvable returns the fault of an answer that approves a call which is not exactly known, or may not run. shown is the
// digest of the call that the person has seen.
func (in *Input) approvable(c command.Command, d command.AnswerQuestion, shown string, rules Rules) *fault.Fault {
	if !d.Approved {
		if given(d.Arguments) {
			return fault.Newf(fault.InvalidField, "An answer that rejects a call changes no arguments. The question stays open.").At("arguments")
		}
		return nil
	}
	if shown == "" {
		return fault.Newf(fault.InputNotFound, "The approval does not name the call that it is for. Look at the question again.")
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
func (in *Input) fits(d command.AnswerQuestion, rules Rules) *fault.Fault {
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
		return fault.Newf(fault.InputNotFound, "The approval is for other arguments than it has. Look at the question again.")
	}
	return nil
}

// respondClient takes the outcome of a call that the client has carried out.
func (s *State) respondClient(c command.Command, d command.AnswerQuestion, in *Input, now time.Time, rules Rules) (decision.Decision, error) {
	data := event.InputAnsweredData{
		InputID: in.ID, RunID: in.RunID, ExecutionID: s.runs[in.RunID].ExecutionID, CommandID: c.ID, Decision: event.DecisionReject,
		Feedback: d.Feedback, By: c.Principal, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(now, in.Asked), CallID: in.CallID, Tool: in.Tool,
		Scope: event.ScopeClientTool,
	}
	switch {
	case d.Approved && d.Result == nil:
		return s.refuse(c, fault.Newf(fault.InvalidField, "The client carries this tool out itself. Answer with its result."), &Input{ID: in.ID, CallID: in.CallID}, now, rules)
	case d.Approved:
		data.Decision, data.Result, data.Files = event.DecisionApprove, *d.Result, d.Files
	}
	return decision.Of(decision.Fact{ID: c.ID + ".answered", Data: data}), nil
}

// stopAll cancels the active run and the waiting ones, the newest first, so that a repeat of the
// command finds where it stopped. It leaves runs that were accepted later.
func (s *State) stopAll(c command.Command, reason string, now time.Time) []decision.Fact {
	before := len(s.order)
	if s.known.Has(c.ID + ".cancelled") {
		before = 0 // unless one of its runs is left
	}
	for i, r := range s.order {
		if s.known.Has(c.ID + ".cancelled." + r.ID) {
			before = i
			break
		}
	}
	var list []decision.Fact
	for i := before - 1; i >= 0; i-- {
		if r := s.order[i]; !r.Status.Terminal() {
			list = append(list, s.stop(c, r, reason, now)...)
		}
	}
	return list
}

// question is the message that the run answers, as a model sees it.
func (s *State) question(r *Run) string {
	if r.Sender == nil && len(r.Spec.Facts)+len(r.Attachments.ContextFiles)+len(r.Attachments.ImageURLs)+len(r.Spec.Files) == 0 {
		return r.Content
	}
	var b strings.Builder
	if r.Sender != nil {
		b.WriteString(s.from(*r.Sender) + "\n\n")
	}
	for _, f := range r.Spec.Facts {
		fmt.Fprintf(&b, "For your information: %s\n%s\n\n", f.Description, f.Value)
	}
	b.WriteString(r.Content)
	for i, file := range r.Attachments.ContextFiles {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\nContext file: " + file)
	}
	for i, url := range r.Attachments.ImageURLs {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("\nImage: " + url)
	}
	b.WriteString(listed(r.Spec.Files))
	return b.String()
}

// listed names files. Texts are in the message already.
func listed(files []event.File) string {
	var b strings.Builder
	for _, f := range files {
		if f.Text() {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "\nFile: %s (%s, %d bytes)", orElse(f.Name, f.Kind), f.MediaType, f.Size)
	}
	return b.String()
}

// from says who a message is from.
func (s *State) from(sender event.Sender) string {
	if sender.Kind == event.SenderSystem {
		return "Notification from the system:"
	}
	name := orElse(sender.Name, sender.ID)
	if s.Agent != nil {
		for _, c := range s.Agent.Colleagues {
			if c.Name == name && c.Role != "" {
				return fmt.Sprintf("Message from %s (role: %s):", name, c.Role)
			}
		}
	}
	return fmt.Sprintf("Message from %s:", name)
}
