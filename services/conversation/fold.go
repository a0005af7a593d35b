package conversation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/plan"
)

// maxRefusals bounds the refusals whose reasons a state remembers, for senders that repeat a message.
const maxRefusals = 64

// folds holds the effect of each event type on the state.
var folds = map[event.Type]func(*State, event.Event) error{
	event.SessionCreated:   with((*State).created),
	event.SessionClosed:    with((*State).closed),
	event.SessionDeleted:   with((*State).deleted),
	event.MessageReceived:  with((*State).received),
	event.MessageRefused:   with((*State).refused),
	event.RunStarted:       with((*State).runStarted),
	event.RunCompleted:     with((*State).runCompleted),
	event.RunFailed:        with((*State).runFailed),
	event.RunCancelled:     with((*State).runCancelled),
	event.JobStarted:       with((*State).turnStarted),
	event.AttemptRefused:   with((*State).attemptRefused),
	event.MessageStarted:   with((*State).messageStarted),
	event.MessageCompleted: with((*State).messageCompleted),
	event.MessageDiscarded: with((*State).messageDiscarded),
	event.ToolCalled:       with((*State).toolCalled),
	event.ToolStarted:      with((*State).toolStarted),
	event.ToolCompleted:    with((*State).toolCompleted),
	event.ToolFailed:       with((*State).toolFailed),
	event.ToolUnknown:      with((*State).toolUnknown),
	event.UsageRecorded:    with((*State).usageRecorded),
	event.MessageDelta:     with((*State).messageDelta),

	event.ReasoningCompleted: with((*State).reasoningCompleted),

	event.JobFailed:     with((*State).turnFailed),
	event.RequestFailed: with((*State).requestFailed),

	event.MemberCreated: with((*State).agentCreated),
	event.MemberClosed:  with((*State).agentClosed),
	event.TodosUpdated:  with((*State).todosUpdated),
	event.JobSuspended:  with((*State).turnPaused),

	event.SessionPaused:   with((*State).paused),
	event.SessionRestored: with((*State).restored),

	event.PlanStarted:        with((*State).planStarted),
	event.PlanCompleted:      with((*State).planCompleted),
	event.PlanInvalid:        with((*State).planInvalid),
	event.PlanCancelled:      with((*State).planCancelled),
	event.InputRequested:     with((*State).inputRequested),
	event.InputAnswered:      with((*State).inputAnswered),
	event.InputExpired:       with((*State).inputExpired),
	event.StepStarted:        with((*State).taskStarted),
	event.StepCompleted:      with((*State).taskCompleted),
	event.StepFailed:         with((*State).taskFailed),
	event.StepCancelled:      with((*State).taskCancelled),
	event.StepRestarted:      with((*State).taskRestarted),
	event.RetryScheduled:     with((*State).retryScheduled),
	event.RunProgressed:      with((*State).runProgressed),
	event.AggregateStarted:   with((*State).aggregateStarted),
	event.AggregateCompleted: with((*State).aggregateCompleted),
	event.PipelineCompleted:  with((*State).pipelineCompleted),
	event.Error:              with((*State).errorTold),
}

func with[T event.Data](f func(*State, event.Event, T) error) func(*State, event.Event) error {
	return func(s *State, e event.Event) error {
		d, err := eventdata.As[T](e)
		if err != nil {
			return err
		}
		s.init()
		return f(s, e, d)
	}
}

func (s *State) created(e event.Event, d event.SessionCreatedData) error {
	s.Created, s.Dialect, s.Principal, s.OpenedFor, s.Preferences = e.Time, d.Dialect, d.Principal, d.Owner, d.Preferences
	return nil
}

func (s *State) closed(event.Event, event.SessionClosedData) error {
	s.Closed = true
	return nil
}

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
	s.known.Add(e.ID)
	s.Todos = d.Todos
	return nil
}

// deleted forgets everything: no job is left that a worker could have, no question that
// could be answered.
func (s *State) deleted(e event.Event, _ event.SessionDeletedData) error {
	*s = State{Seq: e.Sequence, Updated: e.Time, Closed: true, Deleted: true, keep: s.keep, thin: s.thin}
	s.init()
	return nil
}

func (s *State) paused(e event.Event, _ event.SessionPausedData) error {
	s.known.Add(e.ID)
	return nil
}

func (s *State) received(_ event.Event, d event.MessageReceivedData) error {
	s.totals.Messages++
	s.Tainted = s.Tainted || d.Tainted
	s.accept(&Run{
		ID: d.RunID, MessageID: d.MessageID, Content: d.Content, Principal: d.Principal,
		Sender: d.Sender, Attachments: d.Attachments, Spec: d.RunSpec, Status: Queued,
	})
	return nil
}

func (s *State) accept(r *Run) {
	s.runs[r.ID] = r
	s.order = append(s.order, r)
	s.known.Add(messageMark(r.MessageID))
}

func (s *State) refused(_ event.Event, d event.MessageRefusedData) error {
	s.known.Add(refusalMark(d.MessageID))
	if s.refusals = append(s.refusals, d); len(s.refusals) > maxRefusals {
		s.refusals = slices.Delete(s.refusals, 0, 1)
	}
	return nil
}

func (s *State) runStarted(e event.Event, d event.RunStartedData) error {
	if d.Repairs != "" && s.runs[d.RunID] == nil {
		s.accept(s.repair(d))
	}
	return s.onRun(d.RunID, func(r *Run) {
		r.Status, r.ExecutionID, r.Started = Running, d.ExecutionID, e.Time
		if d.Budget != nil {
			r.Budget = *d.Budget
		}
		if s.timed = nil; r.Budget.Seconds > 0 {
			s.timed = r
		}
		s.lastExec = d.ExecutionID
		if r.Spec.Mode == event.ModeChat {
			s.begin(&Work{ID: r.ID, RunID: r.ID, ExecutionID: d.ExecutionID, StartedBy: e.ID, Started: e.Time}, r)
			return
		}
		if r.Pipeline == nil {
			r.Pipeline = &Pipeline{Phase: Planning, Question: r.Content}
		}
		if r.Spec.Mode == event.ModeSteps && d.Repairs == "" {
			r.Pipeline.Phase, r.Pipeline.Tasks = Solving, newTasks(r.Spec.Steps)
			r.Pipeline.Planned = plan.Check(r.Spec.Steps) == nil
			s.totals.Tasks += len(r.Spec.Steps)
		}
	})
}

// begin adds a job.
func (s *State) begin(w *Work, r *Run) {
	s.works[w.ID] = w
	r.works = append(r.works, w)
}

func (s *State) runCompleted(e event.Event, d event.RunCompletedData) error {
	return s.onRun(d.RunID, func(r *Run) {
		if !r.Status.Terminal() {
			r.Answer, r.Outcome = d.Content, d.Outcome
		}
		s.end(r, Completed, e.Time)
	})
}

func (s *State) runFailed(e event.Event, d event.RunFailedData) error {
	return s.onRun(d.RunID, func(r *Run) {
		if !r.Status.Terminal() {
			r.Answer = d.Answer
		}
		s.end(r, Failed, e.Time)
	})
}

func (s *State) runCancelled(e event.Event, d event.RunCancelledData) error {
	s.known.Add(e.ID)
	if command, ok := strings.CutSuffix(e.ID, "."+d.RunID); ok {
		s.known.Add(command)
	}
	return s.onRun(d.RunID, func(r *Run) { s.end(r, Cancelled, e.Time) })
}

// end makes the run terminal. The first terminal event counts; no writer appends
// a second one, and a fold must not let one undo the first. The oldest runs may be forgotten then.
func (s *State) end(r *Run, to Status, at time.Time) {
	if r.Status.Terminal() {
		return
	}
	r.Status, r.Over = to, at
	for _, w := range r.works {
		w.Ended = true
	}
	for _, in := range r.questions {
		in.Over = true
	}
	if r.Pipeline != nil {
		r.Pipeline.Phase = Done
		r.Pipeline.withdraw()
	}
	r.weight = s.weigh(r)
	s.shrink()
}

func (s *State) onRun(id string, f func(*Run)) error {
	r := s.runs[id]
	if r == nil {
		return s.unknown("run %q was never accepted", id)
	}
	f(r)
	return nil
}

func (s *State) onWork(runID string, p event.Part, f func(*Work)) error {
	w := s.works[p.Job(runID)]
	if w == nil {
		return s.unknown("job %q was never begun", p.Job(runID))
	}
	f(w)
	return nil
}

// unknown is the outcome of an event about a part that the state does not have: nothing if the part may be forgotten, as late
// events of a worker that was replaced may come after the end of a run.
func (s *State) unknown(format, id string) error {
	if s.lost.Any {
		return nil
	}
	return fmt.Errorf(format, id)
}
