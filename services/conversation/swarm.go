package conversation

import (
	"slices"
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
	if w.Part.WorkID == "" {
		return facts(s.answered(c, d, w, now)...), nil
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

// Swarm reports whether the log is that of a member which is an agent of the swarm:
// all its runs are done there.
func (s *State) Swarm() bool { return s.Agent != nil && s.Agent.Swarm() }

// answered takes what an agent of the swarm has to say to a message: as a message of
// its own, which viewers are shown like one of a model, or as the run's failure. Of
// what was appended before the service died, nothing is said twice.
func (s *State) answered(c command.Command, d command.DoneWork, w *Work, now time.Time) []Fact {
	if d.Failed {
		entry := fault.Lookup(fault.Code(orElse(d.Code, string(fault.TaskFailed))))
		return append(discards(w), Fact{w.RunID + ".failed", event.RunFailedData{
			RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Code: string(entry.Code),
			Message: orElse(d.Message, entry.Message), Retryable: d.Retryable || entry.Retryable, DurationMS: since(now, w.Started),
		}})
	}
	message, attempt, text := w.ID+".result", max(w.Attempt, 1), clip(d.Output, maxOutput)
	var list []Fact
	if !slices.Contains(w.Open, message) {
		list = append(list, Fact{c.ID + ".started", event.MessageStartedData{
			MessageID: message, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: attempt, Role: event.RoleAssistant,
		}})
	}
	if w.said == 0 && text != "" {
		list = append(list, Fact{c.ID + ".said", event.MessageDeltaData{
			MessageID: message, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: attempt, Text: text,
		}})
	}
	return append(list, Fact{c.ID + ".done", event.MessageCompletedData{
		MessageID: message, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: attempt,
		Role: event.RoleAssistant, Content: text, StopReason: "end",
	}})
}

// concluded ends a run whose agent of the swarm has had its say.
func (s *State) concluded(r *Run, now time.Time) []Fact {
	w := s.Work(r.ID)
	if w == nil || w.Ended {
		return nil
	}
	m, said := w.final()
	if !said {
		return nil
	}
	return []Fact{{r.ID + ".completed", event.RunCompletedData{
		RunID: r.ID, ExecutionID: r.ExecutionID, Attempt: max(w.Attempt, 1), MessageID: m.ID, Content: m.Content,
		DurationMS: since(now, r.Started),
	}}}
}

// Abandoned returns the units whose agent of the swarm still works on them, or may come
// to, although nobody wants the result any more.
func (s *State) Abandoned() []*Work {
	var out []*Work
	for _, r := range s.order {
		for _, w := range r.works {
			_, said := w.final()
			switch {
			case !w.Ended || said || w.Failure != nil:
			case r.Pipeline == nil && s.Swarm():
				if r.Status == Cancelled {
					out = append(out, w)
				}
			case w.SwarmTask != "":
				out = append(out, w)
			}
		}
	}
	return out
}
