package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// maxOutput bounds the result of an agent of the swarm in bytes: the event with it has at most
// 256 KiB, and the encoding as JSON may take six times the bytes.
const maxOutput = 40 << 10

// job returns the job that the reference names, if it is still open.
func (s *State) job(ref command.JobRef) (*Work, bool) {
	w, r := s.Work(ref.Job()), s.Run(ref.RunID)
	return w, w != nil && r != nil && r.Status == Running && !w.Ended && w.Failure == nil
}

// Wants reports whether the job that the reference names is still open.
func (s *State) Wants(ref command.JobRef) bool {
	_, ok := s.job(ref)
	return ok
}

// workTaken records that an agent of the swarm has the job. An agent that takes it
// over from another is the next attempt.
func (s *State) workTaken(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d command.AssignedJob
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	w, ok := s.job(d.JobRef)
	if !ok || w.Attempt >= d.Attempt {
		return s.goOn(c, now, rules)
	}
	return decision.Of(decision.Fact{ID: c.ID + ".taken", Data: event.JobStartedData{
		RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: d.Attempt, Worker: d.Agent, Resumed: w.Attempt > 0,
		SwarmTask: d.TaskID, Part: w.Part,
	}}), nil
}

// workDone takes the result of an agent of the swarm, as a worker's last message.
func (s *State) workDone(c command.Command, now time.Time, rules Rules) (decision.Decision, error) {
	var d command.FinishedJob
	if err := c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	w, ok := s.job(d.JobRef)
	if !ok {
		return s.goOn(c, now, rules)
	}
	if _, said := w.final(); said {
		return s.goOn(c, now, rules)
	}
	if w.Part.JobID == "" {
		return decision.Of(s.answered(c, d, w, now)...), nil
	}
	if d.Failed {
		entry := fault.Lookup(fault.Code(orElse(d.Code, string(fault.TaskFailed))))
		return decision.Of(decision.Fact{ID: c.ID + ".failed", Data: event.JobFailedData{
			RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Code: string(entry.Code),
			Message: orElse(d.Message, entry.Message), Retryable: d.Retryable || entry.Retryable,
			ElapsedMS: since(now, w.Started), Try: w.Try, MaxTries: w.MaxTries, Part: w.Part,
		}}), nil
	}
	return decision.Of(decision.Fact{ID: c.ID + ".done", Data: event.MessageCompletedData{
		MessageID: w.ID + ".result", RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: max(w.Attempt, 1),
		Role: event.RoleAssistant, Content: clip(d.Output, maxOutput), StopReason: "end", Silent: true, Part: w.Part,
	}}), nil
}

// Swarm reports whether the log is that of a member which is an agent of the swarm:
// all its runs are done there.
func (s *State) Swarm() bool { return s.Agent != nil && s.Agent.Swarm() }

// InSwarm reports whether an agent of the swarm answers the run.
func (s *State) InSwarm(r *Run) bool { return r.Pipeline == nil && (s.Swarm() || r.Spec.Agent != "") }

// answered records the answer of an agent of the swarm: as a message, which viewers see like a
// model's, or as the run's failure. Events that were appended before the service died are not
// repeated.
func (s *State) answered(c command.Command, d command.FinishedJob, w *Work, now time.Time) []decision.Fact {
	if d.Failed {
		entry := fault.Lookup(fault.Code(orElse(d.Code, string(fault.TaskFailed))))
		return append(stops(w), decision.Fact{ID: w.RunID + ".failed", Data: event.RunFailedData{
			RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Code: string(entry.Code),
			Message: orElse(d.Message, entry.Message), Retryable: d.Retryable || entry.Retryable, DurationMS: since(now, w.Started),
		}})
	}
	message, attempt, text := w.ID+".result", max(w.Attempt, 1), clip(d.Output, maxOutput)
	var list []decision.Fact
	if !slices.Contains(w.Open, message) {
		list = append(list, decision.Fact{ID: c.ID + ".started", Data: event.MessageStartedData{
			MessageID: message, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: attempt, Role: event.RoleAssistant, Waits: true,
		}})
	}
	if w.said == 0 && text != "" {
		list = append(list, decision.Fact{ID: c.ID + ".said", Data: event.MessageDeltaData{
			MessageID: message, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: attempt, Text: text, Begins: true,
		}})
	}
	return append(list, decision.Fact{ID: c.ID + ".done", Data: event.MessageCompletedData{
		MessageID: message, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: attempt,
		Role: event.RoleAssistant, Content: text, StopReason: "end", Silent: text == "",
	}})
}

// concluded ends a run whose agent of the swarm has had its say.
func (s *State) concluded(r *Run, now time.Time) []decision.Fact {
	w := s.Work(r.ID)
	if w == nil || w.Ended {
		return nil
	}
	m, said := w.final()
	if !said {
		return nil
	}
	return []decision.Fact{{ID: r.ID + ".completed", Data: event.RunCompletedData{
		RunID: r.ID, ExecutionID: r.ExecutionID, Attempt: max(w.Attempt, 1), MessageID: m.ID, Content: m.Content,
		DurationMS: since(now, r.Started),
	}}}
}

// Abandoned returns the jobs whose agent of the swarm works on them, or may start to, although the
// run no longer needs the result.
func (s *State) Abandoned() []*Work {
	var out []*Work
	for _, r := range s.order {
		for _, w := range r.works {
			_, said := w.final()
			switch {
			case !w.Ended || said || w.Failure != nil:
			case s.InSwarm(r):
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

// SwarmTask is the id of the task that a job is given to the swarm as. It says itself:
// agents send it back, and an id of id.EntityFromExternal would become another one then.
// Jobs of different logs may have the same id.
func SwarmTask(log subject.Log, work string) string {
	sum := sha256.Sum256([]byte(log.Name() + "/" + work))
	return "work_" + hex.EncodeToString(sum[:16])
}

// Delegated returns the jobs that agents of the swarm have, have had, or may be given:
// their tasks belong to the log alone.
func (s *State) Delegated() []*Work {
	var out []*Work
	for _, r := range s.order {
		for _, w := range r.works {
			if w.SwarmTask != "" || r.capability(w) != "" || r.Pipeline == nil && r.Spec.Agent != "" {
				out = append(out, w)
			}
		}
	}
	return out
}

// capability is the capability that the task of a job requires; empty if any worker will do.
func (r *Run) capability(w *Work) string {
	if w.Part.Stage != event.StageSolving || r.Pipeline == nil {
		return ""
	}
	t := r.Pipeline.Task(w.Part.StepID)
	if t == nil {
		return ""
	}
	return t.Capability
}
