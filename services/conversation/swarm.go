package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxOutput bounds, in bytes, what an agent of the swarm may say as a result: it goes
// into an event of at most 256 KiB, and JSON may make six times as much of it.
const maxOutput = 40 << 10

// unit returns the unit that the reference names, if it still needs somebody.
func (s *State) unit(ref command.WorkRef) (*Work, bool) {
	w, r := s.Work(ref.Unit()), s.Run(ref.RunID)
	return w, w != nil && r != nil && r.Status == Running && !w.Ended && w.Failure == nil
}

// Wants reports whether the unit that the reference names still needs somebody.
func (s *State) Wants(ref command.WorkRef) bool {
	_, ok := s.unit(ref)
	return ok
}

// workTaken records that an agent of the swarm has the unit. An agent that takes it
// over from another is the next attempt.
func (s *State) workTaken(c command.Command, now time.Time, rules Rules) (Decision, error) {
	var d command.TakenWork
	if err := c.Decode(&d); err != nil {
		return Decision{}, err
	}
	w, ok := s.unit(d.WorkRef)
	if !ok || w.Attempt >= d.Attempt {
		return s.goOn(c, now, rules)
	}
	return facts(Fact{c.ID + ".taken", event.TurnStartedData{
		RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: d.Attempt, Worker: d.Agent, Resumed: w.Attempt > 0,
		SwarmTask: d.TaskID, Part: w.Part,
	}}), nil
}

// workDone takes the result of an agent of the swarm, as a worker's last message.
func (s *State) workDone(c command.Command, now time.Time, rules Rules) (Decision, error) {
	var d command.DoneWork
	if err := c.Decode(&d); err != nil {
		return Decision{}, err
	}
	w, ok := s.unit(d.WorkRef)
	if !ok {
		return s.goOn(c, now, rules)
	}
	if _, said := w.final(); said {
		return s.goOn(c, now, rules)
	}
	if d.Failed {
		entry := fault.Lookup(fault.Code(orElse(d.Code, string(fault.TaskFailed))))
		return facts(Fact{c.ID + ".failed", event.TurnFailedData{
			RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Code: string(entry.Code),
			Message: orElse(d.Message, entry.Message), Retryable: d.Retryable || entry.Retryable,
			ElapsedMS: since(now, w.Started), Try: w.Try, MaxTries: w.MaxTries, Part: w.Part,
		}}), nil
	}
	return facts(Fact{c.ID + ".done", event.MessageCompletedData{
		MessageID: w.ID + ".result", RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: max(w.Attempt, 1),
		Role: event.RoleAssistant, Content: clip(d.Output, maxOutput), StopReason: "end", Part: w.Part,
	}}), nil
}

// Abandoned returns the units whose agent of the swarm still works on them although
// nobody wants the result any more.
func (s *State) Abandoned() []*Work {
	var out []*Work
	for _, r := range s.order {
		for _, w := range r.works {
			if _, said := w.final(); w.SwarmTask != "" && w.Ended && !said && w.Failure == nil {
				out = append(out, w)
			}
		}
	}
	return out
}
