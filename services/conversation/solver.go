package conversation

import (
	"fmt"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/plan"
)

// solver decides on the steps of a plan.
type solver struct{ director }

// solve settles ended steps, reports progress, starts the steps that can start, and begins the aggregation after the last.
func (d solver) solve() []decision.Fact {
	if list := d.progressed(); len(list) > 0 {
		return list
	}
	for _, t := range d.p.Steps {
		if list := d.settle(t); len(list) > 0 {
			return list
		}
	}
	if list := d.doomed(); len(list) > 0 {
		return list
	}
	if list := d.startSteps(); len(list) > 0 {
		return list
	}
	if d.p.open() {
		return nil
	}
	return aggregator(d).solved()
}

// settle returns the outcome of a running step, or schedules another attempt.
func (d solver) settle(t *Step) []decision.Fact {
	if t.Retry != nil {
		if d.now.Before(t.Retry.Due) {
			return nil
		}
		return []decision.Fact{d.restarted(t, fmt.Sprintf("%s.again", t.Job.ID), restartAfterError, "", d.tries(t))}
	}
	if t.State != plan.Running {
		return nil
	}
	j := t.Job
	if j.Failure != nil {
		return d.jobFailed(t, j)
	}
	if m, ok := j.final(); ok {
		return d.completed(t, j, m)
	}
	if limit := d.timeout(); !j.Paused && !j.Claimed.IsZero() && !d.now.Before(j.Claimed.Add(limit)) {
		return []decision.Fact{j.failed(fault.Lookup(fault.TaskTimeout), d.now, limit)}
	}
	return nil
}

// tries is the highest attempt that a step may have.
func (d solver) tries(t *Step) int {
	if t.Max > 0 {
		return t.Max
	}
	return d.rules.Tries
}

func (d solver) timeout() time.Duration {
	if n := d.r.Spec.TimeoutSeconds; n > 0 {
		return time.Duration(n) * time.Second
	}
	return d.rules.StepTimeout
}

func (d solver) completed(t *Step, j *Job, m Message) []decision.Fact {
	return []decision.Fact{{ID: j.ID + ".completed", Data: event.StepCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Title: t.Title, Attempt: t.Attempt,
		MessageID: m.ID, Output: m.Content, Usage: j.Tally.Usage(), Tools: j.Tally.ByTool,
		DurationMS: since(d.now, t.Started), Part: j.Part,
	}}}
}

func (d solver) jobFailed(t *Step, j *Job) []decision.Fact {
	if retry, ok := d.retry(j, t.Attempt, d.tries(t)); ok {
		return append(discards(j), retry)
	}
	return append(
		stops(j), decision.Fact{ID: j.ID + ".given-up", Data: event.StepFailedData{
			RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Title: t.Title, Attempt: t.Attempt,
			Code: j.Failure.Code, Message: j.Failure.Message, DurationMS: since(d.now, t.Started), Part: j.Part,
		}},
	)
}

// progressed reports the progress of the run after an outcome that is not counted yet. It is a
// separate fact, because another writer may append an event between the outcome and the count.
func (d solver) progressed() []decision.Fact {
	for _, t := range d.p.Steps {
		if !t.Final() || t.Counted {
			continue
		}
		return []decision.Fact{{ID: fmt.Sprintf("%s.t.%s.%d.%d.progressed", d.r.ID, t.ID, t.Attempt, t.Restarts), Data: event.RunProgressedData{
			RunID: d.r.ID, ExecutionID: d.r.ExecutionID, StepID: t.ID, Title: t.Title, Status: stateNames[t.State],
			Completed: d.p.count(plan.Done), Failed: d.p.count(plan.Failed), Cancelled: d.p.count(plan.Cancelled),
			Total: len(d.p.Steps), ElapsedMS: since(d.now, d.p.SolveStarted),
		}}}
	}
	return nil
}

// restarted gives a step another attempt.
func (d solver) restarted(t *Step, eventID, reason, by string, limit int) decision.Fact {
	data := event.StepRestartedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Attempt: t.Attempt + 1, MaxAttempts: limit, Reason: reason, By: by,
		PreviousError: t.Error, Part: event.Part{Stage: event.StageSolving, StepID: t.ID},
	}
	if t.Retry != nil {
		data.PreviousError, data.BackoffMS = t.Retry.Error, since(t.Retry.Due, t.Retry.Since)
	}
	return decision.Fact{ID: eventID, Data: data}
}

// doomed cancels the steps that can never start.
func (d solver) doomed() []decision.Fact {
	ids := plan.Doomed(d.p.list(), d.p.state)
	if len(ids) == 0 {
		return nil
	}
	t := d.p.Step(ids[0])
	base := fmt.Sprintf("%s.t.%s.%d.%d.doomed", d.r.ID, t.ID, t.Attempt, t.Restarts)
	return []decision.Fact{d.cancelled(t, base, "dependency_failed", "")}
}

func (d solver) cancelled(t *Step, eventID, reason, by string) decision.Fact {
	data := event.StepCancelledData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Title: t.Title, Reason: reason, By: by,
		DurationMS: since(d.now, t.Started), Part: event.Part{Stage: event.StageSolving, StepID: t.ID},
	}
	if t.State == plan.Running {
		data.Part, data.Partial = t.Job.Part, clip(string(t.Job.Partial), maxPartial)
	} else {
		data.DurationMS = 0
	}
	return decision.Fact{ID: eventID, Data: data}
}

func (d solver) startSteps() []decision.Fact {
	limit := d.rules.concurrent(d.r.Spec)
	state := func(id string) plan.State {
		if t := d.p.Step(id); t.Retry == nil {
			return t.State
		}
		return plan.Running // it waits for its time, not for a slot
	}
	var list []decision.Fact
	for _, id := range plan.Start(d.p.list(), state, limit-d.p.count(plan.Running)) {
		list = append(list, d.startStep(d.p.Step(id)))
	}
	return list
}

func (d solver) startStep(t *Step) decision.Fact {
	n := t.Attempt + 1
	work := fmt.Sprintf("%s.t.%s.%d", d.r.ID, t.ID, n)
	return decision.Fact{ID: work + ".started", Data: event.StepStartedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Step: t.Step, Attempt: n, MaxTries: d.tries(t),
		Part: event.Part{JobID: work, Stage: event.StageSolving, StepID: t.ID},
	}}
}

// restart gives a step, and the steps that depend on it, another attempt.
func (d solver) restart(c command.Command, ref command.StepRef) []decision.Fact {
	var list []decision.Fact
	if d.p.Phase == Aggregating {
		list = discards(d.p.Job)
	}
	tries := ref.MaxAttempts
	if tries <= 0 || tries > d.rules.Tries {
		tries = d.rules.Tries
	}
	again := func(t *Step, reason string) {
		if t.State == plan.Running {
			list = append(list, d.endStep(t, c.ID+".ended."+t.ID, c.Principal, discards)...)
		}
		list = append(list, d.restarted(t, c.ID+".restarted."+t.ID, reason, c.Principal, t.Attempt+tries))
	}
	for _, dependant := range d.affected(ref.StepID) {
		if t := d.p.Step(dependant); t.State != plan.Waiting && !d.s.known.has(c.ID+".restarted."+t.ID) {
			again(t, restartForDependency)
		}
	}
	again(d.p.Step(ref.StepID), restartUser) // last: it marks the command as done
	return list
}

// affected returns the steps that depend on the step and could be solved after it. It leaves out those that a person has
// cancelled, and those that depend on them.
func (d solver) affected(taskID string) []string {
	list := d.p.list()
	ids := plan.Dependants(list, taskID)
	ids = slices.DeleteFunc(ids, func(id string) bool { return d.p.Step(id).Error == byUser })
	doomed := plan.Doomed(list, func(id string) plan.State {
		if id == taskID || slices.Contains(ids, id) {
			return plan.Waiting
		}
		return d.p.state(id)
	})
	return slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(doomed, id) })
}

// endStep cancels a step at the request of a user, after closing its unfinished messages.
func (d solver) endStep(t *Step, eventID, by string, closing func(*Job) []decision.Fact) []decision.Fact {
	var list []decision.Fact
	if t.State == plan.Running {
		list = closing(t.Job)
	}
	return append(list, d.cancelled(t, eventID, userRequest, by))
}

// deadline is when the time of a step runs out. It has not begun for a step that no worker has claimed: such a step is
// checked again later.
func (d solver) deadline(t *Step) time.Time {
	if j := t.Job; !j.Claimed.IsZero() && !j.Paused {
		return j.Claimed.Add(d.timeout())
	}
	due := t.Job.Started.Add(d.timeout())
	if due.After(d.now) && !t.Job.Paused {
		return due
	}
	return d.now.Add(d.timeout())
}

// maxPartial bounds the part of an unfinished text that the event about a cancelled step has, in bytes.
const maxPartial = 2000

// byUser marks a step that a person cancelled.
const byUser = "cancelled: " + userRequest
