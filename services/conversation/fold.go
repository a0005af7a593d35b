package conversation

import (
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// folds holds the effect of each event type on the state.
var folds = map[event.Type]func(*State, event.Event) error{
	event.SessionCreated:   with((*State).created),
	event.SessionClosed:    with((*State).closed),
	event.MessageReceived:  with((*State).received),
	event.MessageRefused:   with((*State).refused),
	event.RunStarted:       with((*State).runStarted),
	event.RunCompleted:     with((*State).runCompleted),
	event.RunFailed:        with((*State).runFailed),
	event.RunCancelled:     with((*State).runCancelled),
	event.TurnStarted:      with((*State).turnStarted),
	event.AttemptRefused:   with((*State).attemptRefused),
	event.MessageStarted:   with((*State).messageStarted),
	event.MessageCompleted: with((*State).messageCompleted),
	event.MessageDiscarded: with((*State).messageDiscarded),
	event.ToolCalled:       with((*State).toolCalled),
	event.ToolStarted:      with((*State).toolStarted),
	event.ToolCompleted:    with((*State).toolCompleted),
	event.ToolFailed:       with((*State).toolFailed),
	event.ToolUnknown:      with((*State).toolUnknown),
}

func with[T event.Data](f func(*State, event.Event, T) error) func(*State, event.Event) error {
	return func(s *State, e event.Event) error {
		d, err := event.As[T](e)
		if err != nil {
			return err
		}
		s.init()
		return f(s, e, d)
	}
}

func (s *State) created(e event.Event, d event.SessionCreatedData) error {
	s.Created, s.Dialect, s.Principal = e.Time, d.Dialect, d.Principal
	return nil
}

func (s *State) closed(event.Event, event.SessionClosedData) error {
	s.Closed = true
	return nil
}

func (s *State) received(_ event.Event, d event.MessageReceivedData) error {
	r := &Run{ID: d.RunID, MessageID: d.MessageID, Content: d.Content, Principal: d.Principal, Status: Queued}
	s.runs[r.ID] = r
	s.order = append(s.order, r)
	s.messages[d.MessageID] = d.RunID
	return nil
}

func (s *State) refused(_ event.Event, d event.MessageRefusedData) error {
	s.messages[d.MessageID] = ""
	return nil
}

func (s *State) runStarted(e event.Event, d event.RunStartedData) error {
	return s.onRun(d.RunID, func(r *Run) {
		r.Status, r.ExecutionID, r.StartedBy, r.Started = Running, d.ExecutionID, e.ID, e.Time
		s.lastExec = d.ExecutionID
	})
}

func (s *State) runCompleted(_ event.Event, d event.RunCompletedData) error {
	return s.onRun(d.RunID, func(r *Run) { r.end(Completed); r.Answer = d.Content })
}

func (s *State) runFailed(_ event.Event, d event.RunFailedData) error {
	return s.onRun(d.RunID, func(r *Run) { r.end(Failed) })
}

func (s *State) runCancelled(_ event.Event, d event.RunCancelledData) error {
	s.cancels[d.CommandID] = true
	return s.onRun(d.RunID, func(r *Run) { r.end(Cancelled) })
}

func (s *State) turnStarted(e event.Event, d event.TurnStartedData) error {
	return s.onRun(d.RunID, func(r *Run) { r.Attempt, r.Claim, r.Work = d.Attempt, e.ID, d.Work })
}

func (s *State) attemptRefused(_ event.Event, d event.AttemptRefusedData) error {
	return s.onRun(d.RunID, func(r *Run) { r.Refused = max(r.Refused, d.Attempt) })
}

func (s *State) messageStarted(_ event.Event, d event.MessageStartedData) error {
	return s.onRun(d.RunID, func(r *Run) { r.Open = append(r.Open, d.MessageID) })
}

func (s *State) messageCompleted(_ event.Event, d event.MessageCompletedData) error {
	return s.onRun(d.RunID, func(r *Run) {
		r.closeMessage(d.MessageID)
		r.Messages = append(r.Messages, Message{ID: d.MessageID, Content: d.Content, ToolCalls: d.ToolCalls})
	})
}

func (s *State) messageDiscarded(_ event.Event, d event.MessageDiscardedData) error {
	return s.onRun(d.RunID, func(r *Run) { r.closeMessage(d.MessageID) })
}

func (s *State) toolCalled(_ event.Event, d event.ToolCalledData) error {
	s.calls[d.CallID] = &Call{
		ID: d.CallID, RunID: d.RunID, Tool: d.Tool, Arguments: d.Arguments,
		Idempotent: d.Idempotent, Status: CallIntended, Attempt: d.Attempt,
	}
	return nil
}

func (s *State) toolStarted(_ event.Event, d event.ToolStartedData) error {
	return s.onCall(d.CallID, d.Attempt, CallStarted, "")
}

func (s *State) toolCompleted(_ event.Event, d event.ToolCompletedData) error {
	return s.onCall(d.CallID, d.Attempt, CallCompleted, d.Result)
}

func (s *State) toolFailed(_ event.Event, d event.ToolFailedData) error {
	return s.onCall(d.CallID, d.Attempt, CallFailed, d.Message)
}

func (s *State) toolUnknown(_ event.Event, d event.ToolUnknownData) error {
	return s.onCall(d.CallID, d.Attempt, CallUnknown, d.Message)
}

func (s *State) onRun(id string, f func(*Run)) error {
	r := s.runs[id]
	if r == nil {
		return fmt.Errorf("run %q was never accepted", id)
	}
	f(r)
	return nil
}

func (s *State) onCall(id string, attempt int, to CallStatus, result string) error {
	c := s.calls[id]
	if c == nil {
		return fmt.Errorf("tool call %q was never intended", id)
	}
	c.Status, c.Attempt, c.Result = to, attempt, result
	return nil
}

// end makes the run terminal. The first terminal event counts; no writer appends
// a second one, and a fold must not let one undo the first.
func (r *Run) end(to Status) {
	if !r.Status.Terminal() {
		r.Status = to
	}
}

func (r *Run) closeMessage(id string) {
	r.Open = slices.DeleteFunc(r.Open, func(m string) bool { return m == id })
}
