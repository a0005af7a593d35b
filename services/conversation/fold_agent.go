package conversation

import (
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// agentCreated opens the log of a member of a team, as session.created does that of a
// session.
func (s *State) agentCreated(e event.Event, d event.MemberCreatedData) error {
	s.Created, s.Principal, s.Agent = e.Time, d.Principal, &d
	return nil
}

func (s *State) agentClosed(event.Event, event.MemberClosedData) error {
	s.Closed = true
	return nil
}

func (s *State) todosUpdated(e event.Event, d event.TodosUpdatedData) error {
	s.known.add(e.ID)
	s.Todos = d.Todos
	return nil
}

// turnPaused puts a job down. A claim that is not the newest has nothing to say.
func (s *State) turnPaused(e event.Event, d event.JobSuspendedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		if d.Attempt == w.Attempt {
			w.Paused, w.pause, w.rested = true, e.ID, w.Attempt
		}
	})
}

// toolAsked folds the question whether a tool call may run. A call has at most one.
func (s *State) toolAsked(e event.Event, d event.InputRequestedData) error {
	return s.onRun(d.RunID, func(r *Run) {
		if s.inputs[d.InputID] != nil || s.asked[d.CallID] != nil {
			return
		}
		in := &Input{
			ID: d.InputID, RunID: d.RunID, Asked: e.Time, Over: r.Status.Terminal(),
			CallID: d.CallID, Tool: d.Tool, Digest: d.Digest, Attempt: d.Attempt, Client: d.Scope == event.ScopeClientTool,
		}
		s.inputs[d.InputID], s.asked[d.CallID] = in, in
		r.questions = append(r.questions, in)
	})
}

// toolAnswered folds the answer. A call that was refused, or that the client has carried out, has its outcome with it.
func (s *State) toolAnswered(in *Input, d event.InputAnsweredData) error {
	if in.Over {
		return nil
	}
	in.Answered, in.Over = &d, true
	if in.Client {
		s.calls[in.CallID] = &Call{ID: in.CallID, RunID: in.RunID, Work: in.RunID, Tool: in.Tool, Status: CallCompleted, Attempt: in.Attempt, Result: d.Result, Files: d.Files}
		if d.Decision == event.DecisionReject {
			s.calls[in.CallID].Status, s.calls[in.CallID].Result = CallFailed, orElse(d.Feedback, "The client did not carry the call out.")
		}
		return nil
	}
	if d.Decision != event.DecisionReject || s.calls[in.CallID] != nil {
		return nil
	}
	s.calls[in.CallID] = &Call{
		ID: in.CallID, RunID: in.RunID, Work: in.RunID, Tool: in.Tool, Status: CallFailed, Attempt: in.Attempt,
		Result: "denied: " + orElse(d.Feedback, "no reason was given"),
	}
	return nil
}
