package conversation

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/retry"
)

func (s *State) turnStarted(e event.Event, d event.JobStartedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		if w.Claimed.IsZero() || w.Paused { // the time in which it waited for people does not count
			w.Claimed = e.Time
		}
		w.Attempt, w.Claim, w.Item, w.SwarmTask, w.worker, w.Paused = d.Attempt, e.ID, d.CommandID, d.SwarmTask, d.Worker, false
	})
}

func (s *State) attemptRefused(_ event.Event, d event.AttemptRefusedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) { w.Refused = max(w.Refused, d.Attempt) })
}

func (s *State) messageStarted(e event.Event, d event.MessageStartedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		w.Open = append(w.Open, d.MessageID)
		w.partial, w.said, w.begun = nil, 0, !d.Waits
		w.asked = e.Time
		s.totals.Begun++
	})
}

func (s *State) messageDelta(_ event.Event, d event.MessageDeltaData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		w.said += len(d.Text)
		w.begun = w.begun || d.Begins
		w.partial = append(w.partial, d.Text...)
	})
}

// thought is what a model wants back with a message that is not complete yet.
type thought struct {
	Message   string          `json:",omitempty"`
	Reasoning string          `json:",omitempty"`
	PassBack  *event.PassBack `json:",omitempty"`
}

// reasoningCompleted keeps the reasoning for the message that follows from it, if the model wants it back.
func (s *State) reasoningCompleted(_ event.Event, d event.ReasoningCompletedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		if d.PassBack != nil {
			w.thought = thought{Message: d.MessageID, Reasoning: d.Content, PassBack: d.PassBack}
		}
	})
}

func (s *State) messageCompleted(_ event.Event, d event.MessageCompletedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		s.ask(s.runs[d.RunID], d.ToolCalls)
		m := Message{ID: d.MessageID, Content: d.Content, ToolCalls: d.ToolCalls}
		if !d.Complete() {
			m.Stop = d.StopReason
		}
		if m.stopped() {
			m.Attempt = d.Attempt
		} else {
			s.recovered(w)
			w.tally.Calls++
			s.totals.Calls++
		}
		if w.thought.Message == d.MessageID {
			m.Reasoning, m.PassBack = w.thought.Reasoning, w.thought.PassBack
		}
		w.closeMessage(d.MessageID)
		w.Messages = append(w.Messages, m)
	})
}

func (s *State) messageDiscarded(_ event.Event, d event.MessageDiscardedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) { w.closeMessage(d.MessageID) })
}

// Silent reports whether viewers have been shown nothing of the message that is open.
func (w *Work) Silent() bool { return w == nil || !w.begun }

func (w *Work) closeMessage(id string) {
	w.Open = slices.DeleteFunc(w.Open, func(m string) bool { return m == id })
	w.partial, w.thought = nil, thought{}
}

func (s *State) turnFailed(e event.Event, d event.JobFailedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		if !w.Ended && w.Failure == nil {
			w.Failure = &d
			if retry.Transient(d.Code) {
				s.outage(w, e.Time)
			}
		}
	})
}

func (s *State) requestFailed(e event.Event, d event.RequestFailedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		s.outage(w, e.Time)
		w.Outage.Since = earliest(w.Outage.Since, earliest(w.asked, e.Time))
		w.Outage.Tries, w.Outage.Next = d.Try, e.Time.Add(time.Duration(d.RetryAfterMS)*time.Millisecond)
		if w.Outage.Code = d.Code; d.NextModel != "" {
			w.Instead = d.NextModel
		}
	})
}

// outage notes that a request of the job has failed.
func (s *State) outage(w *Work, now time.Time) {
	if r := s.runs[w.RunID]; r != nil {
		r.failing = earliest(r.failing, earliest(w.asked, now))
	}
}

// recovered notes that the model has answered.
func (s *State) recovered(w *Work) {
	w.Outage = retry.Outage{}
	if r := s.runs[w.RunID]; r != nil {
		r.failing = time.Time{}
	}
}

// earliest returns first, or otherwise if that is zero.
func earliest(first, otherwise time.Time) time.Time {
	if first.IsZero() {
		return otherwise
	}
	return first
}

func (s *State) usageRecorded(_ event.Event, d event.UsageRecordedData) error {
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		w.tally.Record(d)
		s.totals.Record(d)
	})
}

func (s *State) toolCalled(_ event.Event, d event.ToolCalledData) error {
	if s.runs[d.RunID] == nil && s.lost.Any {
		return nil
	}
	s.calls[d.CallID] = &Call{
		ID: d.CallID, RunID: d.RunID, Work: d.Job(d.RunID), Tool: d.Tool, Arguments: d.Arguments,
		Idempotent: d.Idempotent, Status: CallIntended, Attempt: d.Attempt,
	}
	return s.onWork(d.RunID, d.Part, func(w *Work) {
		w.tally.Use(d.Tool)
		s.totals.Tools++
	})
}

func (s *State) toolStarted(_ event.Event, d event.ToolStartedData) error {
	return s.onCall(d.CallID, d.Attempt, CallStarted, "")
}

func (s *State) toolCompleted(_ event.Event, d event.ToolCompletedData) error {
	s.Tainted = s.Tainted || d.Untrusted
	if err := s.onCall(d.CallID, d.Attempt, CallCompleted, d.Result); err != nil || s.calls[d.CallID] == nil {
		return err
	}
	s.calls[d.CallID].Files = d.Files
	return nil
}

func (s *State) toolFailed(_ event.Event, d event.ToolFailedData) error {
	s.Tainted = s.Tainted || d.Untrusted
	return s.onCall(d.CallID, d.Attempt, CallFailed, d.Message)
}

func (s *State) toolUnknown(_ event.Event, d event.ToolUnknownData) error {
	return s.onCall(d.CallID, d.Attempt, CallUnknown, d.Message)
}

func (s *State) onCall(id string, attempt int, to CallStatus, result string) error {
	c := s.calls[id]
	if c == nil {
		return s.unknown("tool call %q was never intended", id)
	}
	c.Status, c.Attempt, c.Result = to, attempt, result
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
			CallID: d.CallID, Tool: d.Tool, Digest: d.Digest, Shown: d.Definition, Attempt: d.Attempt, Client: d.Scope == event.ScopeClientTool,
			Schema: string(d.Parameters),
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
	in.Answered, in.Over, in.Schema = &d, true, ""
	if d.Decision == event.DecisionModify {
		s.runs[in.RunID].change(in.CallID, d.Arguments)
	}
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

// change replaces the arguments of a call that the model has asked for. The list of the event stays as it is.
func (r *Run) change(callID string, arguments json.RawMessage) {
	for _, w := range r.works {
		for i, m := range w.Messages {
			n := slices.IndexFunc(m.ToolCalls, func(tc event.ToolCall) bool { return tc.ID == callID })
			if n < 0 {
				continue
			}
			calls := slices.Clone(m.ToolCalls)
			calls[n].Arguments = arguments
			w.Messages[i].ToolCalls = calls
			return
		}
	}
}
