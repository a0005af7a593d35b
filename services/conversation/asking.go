package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// maxToAgent bounds the answer to an agent in bytes: the proof of its sender holds it whole, and the events with it stay small.
const maxToAgent = 40 << 10

// agentAsks records a question of an agent of the swarm that has a job, once. The log of the agent's task decides which answer
// counts, and when its time has passed.
func (s *State) agentAsks(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d command.JobQuestion
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	w, ok := s.job(d.JobRef)
	if !ok || s.inputs[d.InputID] != nil || w.Attempt > d.Attempt {
		return s.goOn(c, now, rules)
	}
	if _, said := w.final(); said {
		return s.goOn(c, now, rules)
	}
	return decision.Of(append(s.withdraw(w, now), decision.Fact{ID: d.InputID + ".asked", Data: event.InputRequestedData{
		InputID: d.InputID, RunID: w.RunID, ExecutionID: w.ExecutionID, Scope: event.ScopeAgent, Summary: d.Summary, TimeoutSeconds: d.TimeoutSeconds,
		AgentQuestion: d.AgentQuestion, Part: w.Part,
	}})...), nil
}

// withdraw closes the open questions of the agent that has a job: an agent has one.
func (s *State) withdraw(w *Work, now time.Time) (list []decision.Fact) {
	for _, in := range s.runs[w.RunID].questions {
		if in.Asking != nil && !in.Over && in.Asking.Work == w.ID {
			list = append(list, s.unanswered(in, true, now))
		}
	}
	return list
}

// unanswered closes a question of an agent that has got no answer.
func (s *State) unanswered(in *Input, withdrawn bool, now time.Time) decision.Fact {
	return decision.Fact{ID: in.ID + ".expired", Data: event.InputExpiredData{
		InputID: in.ID, RunID: in.RunID, ExecutionID: s.runs[in.RunID].ExecutionID, TimeoutSeconds: int(in.Timeout / time.Second),
		ElapsedMS: since(now, in.Asked), Scope: event.ScopeAgent, Withdrawn: withdrawn,
	}}
}

// agentAsked folds a question of an agent of the swarm.
func (s *State) agentAsked(e event.Event, d event.InputRequestedData) error {
	return s.onRun(d.RunID, func(r *Run) {
		if s.inputs[d.InputID] != nil {
			return
		}
		in := &Input{
			ID: d.InputID, RunID: d.RunID, Asked: e.Time, Over: r.Status.Terminal(), Timeout: time.Duration(d.TimeoutSeconds) * time.Second,
			Asking: &Asking{Work: d.Job(d.RunID), Task: d.TaskID, Seq: d.TaskSeq},
		}
		s.inputs[d.InputID] = in
		r.questions = append(r.questions, in)
	})
}

// closeQuestion records what became of a question of an agent, once.
func (s *State) closeQuestion(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d command.ClosedQuestion
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	in := s.inputs[d.InputID]
	if in == nil || in.Asking == nil || in.Over {
		return s.goOn(c, now, rules)
	}
	if d.CommandID == "" {
		return decision.Of(s.unanswered(in, d.Withdrawn, now)), nil
	}
	return decision.Of(decision.Fact{ID: in.ID + ".answered", Data: event.InputAnsweredData{
		InputID: in.ID, RunID: in.RunID, ExecutionID: s.runs[in.RunID].ExecutionID, CommandID: d.CommandID, Decision: d.Decision, Feedback: d.Feedback,
		By: d.By, ClientID: d.ClientID, Segment: d.Segment, ElapsedMS: since(now, in.Asked), Scope: event.ScopeAgent, Message: d.Message,
	}}), nil
}

// answeredLate refuses an answer to a question that is over, unless it is the one that counts.
func (s *State) answeredLate(c command.Command, in *Input, why string, now time.Time, rules Rules) (decision.Decision, error) {
	switch {
	case in.Answered != nil && in.Answered.CommandID == c.ID:
		return s.answeredAgain(c, in, now, rules)
	case in.Answered != nil:
		return s.refuse(c, fault.New(fault.InputAnswered), in, now, rules)
	case in.Expired:
		return s.refuse(c, fault.New(fault.InputExpired), in, now, rules)
	}
	return s.refuse(c, fault.Newf(fault.InputNotFound, "The question is not open any more: %s.", why), in, now, rules)
}

// respondAgent refuses an answer to an agent that cannot count. Any other one changes nothing here: see Handed.
func (s *State) respondAgent(c command.Command, in *Input, now time.Time, rules Rules) (decision.Decision, error) {
	if in.Over {
		return s.answeredLate(c, in, "its agent does not wait", now, rules)
	}
	if len(c.Data) > maxToAgent {
		return s.refuse(c, fault.Newf(fault.InvalidField, "The answer is too long for an agent. Send less than 40 KB."), in, now, rules)
	}
	return s.goOn(c, now, rules)
}

// Handed returns the message that hands an answer on to the agent that has asked: the log of its task takes the first one, and
// reports it with command.CloseQuestion. ok is false for any other command.
func (s *State) Handed(c command.Command, rules Rules) (m command.TaskMessage, ok bool) {
	var d command.AnswerQuestion
	if c.Verb != command.Answer || s.Deleted || !s.sees(c, rules) || len(c.Data) > maxToAgent || c.Decode(&d) != nil {
		return m, false
	}
	in := s.inputs[d.InputID]
	if in == nil || in.Asking == nil || in.Over || !s.mayAnswer(c, in, rules) {
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
