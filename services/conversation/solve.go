package conversation

import (
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/plan"
)

// solve settles ended tasks, reports progress, starts tasks that can start, and begins the
// aggregation after the last one.
func (d director) solve() []decision.Fact {
	if list := d.progressed(); len(list) > 0 {
		return list
	}
	for _, t := range d.p.Tasks {
		if list := d.settle(t); len(list) > 0 {
			return list
		}
	}
	if list := d.doomed(); len(list) > 0 {
		return list
	}
	if list := d.startTasks(); len(list) > 0 {
		return list
	}
	if d.p.open() {
		return nil
	}
	return d.solved()
}

// settle returns the outcome of a running task, or schedules another attempt.
func (d director) settle(t *Task) []decision.Fact {
	if t.Retry != nil {
		if d.now.Before(t.Retry.Due) {
			return nil
		}
		return []decision.Fact{d.restarted(t, fmt.Sprintf("%s.again", t.Work.ID), restartAfterError, "", d.tries(t))}
	}
	if t.State != plan.Running {
		return nil
	}
	w := t.Work
	if w.Failure != nil {
		return d.taskJobFailed(t, w)
	}
	if m, ok := w.final(); ok {
		return d.taskCompleted(t, w, m)
	}
	if limit := d.taskTimeout(); !w.Paused && !w.Claimed.IsZero() && !d.now.Before(w.Claimed.Add(limit)) {
		return []decision.Fact{d.s.failed(w, fault.Lookup(fault.TaskTimeout), d.now, limit)}
	}
	return nil
}

// tries is the highest attempt that a task may have.
func (d director) tries(t *Task) int {
	if t.Max > 0 {
		return t.Max
	}
	return d.rules.Tries
}

func (d director) taskTimeout() time.Duration {
	if n := d.r.Spec.TimeoutSeconds; n > 0 {
		return time.Duration(n) * time.Second
	}
	return d.rules.TaskTimeout
}

// failed says that a job ended in an error that its worker does not report.
func (s *State) failed(w *Work, entry fault.Entry, now time.Time, limit time.Duration) decision.Fact {
	return decision.Fact{ID: w.ID + ".failed", Data: event.JobFailedData{
		RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Code: string(entry.Code), Message: entry.Message,
		Retryable: entry.Retryable, TimeoutSeconds: int(limit / time.Second), ElapsedMS: since(now, w.Started),
		Try: w.Try, MaxTries: w.MaxTries, Part: w.Part,
	}}
}

func (d director) taskCompleted(t *Task, w *Work, m Message) []decision.Fact {
	return []decision.Fact{{ID: w.ID + ".completed", Data: event.StepCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Title: t.Title, Attempt: t.Attempt,
		MessageID: m.ID, Output: m.Content, Usage: w.tally.Usage(), Tools: w.tally.ByTool,
		DurationMS: since(d.now, t.Started), Part: w.Part,
	}}}
}

func (d director) taskJobFailed(t *Task, w *Work) []decision.Fact {
	if retry, ok := d.retry(w, t.Attempt, d.tries(t)); ok {
		return append(discards(w), retry)
	}
	return append(
		stops(w), decision.Fact{ID: w.ID + ".given-up", Data: event.StepFailedData{
			RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Title: t.Title, Attempt: t.Attempt,
			Code: w.Failure.Code, Message: w.Failure.Message, DurationMS: since(d.now, t.Started), Part: w.Part,
		}},
	)
}

var stateNames = map[plan.State]string{
	plan.Waiting: "waiting", plan.Running: "running", plan.Done: "completed", plan.Failed: "failed", plan.Cancelled: "cancelled",
}

// progressed reports the progress of the run after an outcome that is not counted yet. It is a
// separate fact, because another writer may append an event between the outcome and the count.
func (d director) progressed() []decision.Fact {
	for _, t := range d.p.Tasks {
		if !t.Final() || t.Counted {
			continue
		}
		return []decision.Fact{{ID: fmt.Sprintf("%s.t.%s.%d.%d.progressed", d.r.ID, t.ID, t.Attempt, t.Restarts), Data: event.RunProgressedData{
			RunID: d.r.ID, ExecutionID: d.r.ExecutionID, StepID: t.ID, Title: t.Title, Status: stateNames[t.State],
			Completed: d.p.count(plan.Done), Failed: d.p.count(plan.Failed), Cancelled: d.p.count(plan.Cancelled),
			Total: len(d.p.Tasks), ElapsedMS: since(d.now, d.p.solveStarted),
		}}}
	}
	return nil
}

// restarted gives a task another attempt.
func (d director) restarted(t *Task, eventID, reason, by string, limit int) decision.Fact {
	data := event.StepRestartedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Attempt: t.Attempt + 1, MaxAttempts: limit, Reason: reason, By: by,
		PreviousError: t.Error, Part: event.Part{Stage: event.StageSolving, StepID: t.ID},
	}
	if t.Retry != nil {
		data.PreviousError, data.BackoffMS = t.Retry.Error, since(t.Retry.Due, t.Retry.Since)
	}
	return decision.Fact{ID: eventID, Data: data}
}

// doomed cancels the tasks that can never start.
func (d director) doomed() []decision.Fact {
	ids := plan.Doomed(d.p.list(), d.p.state)
	if len(ids) == 0 {
		return nil
	}
	t := d.p.Task(ids[0])
	base := fmt.Sprintf("%s.t.%s.%d.%d.doomed", d.r.ID, t.ID, t.Attempt, t.Restarts)
	return []decision.Fact{d.taskCancelled(t, base, "dependency_failed", "")}
}

func (d director) taskCancelled(t *Task, eventID, reason, by string) decision.Fact {
	data := event.StepCancelledData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Title: t.Title, Reason: reason, By: by,
		DurationMS: since(d.now, t.Started), Part: event.Part{Stage: event.StageSolving, StepID: t.ID},
	}
	if t.State == plan.Running {
		data.Part, data.Partial = t.Work.Part, clip(string(t.Work.partial), maxPartial)
	} else {
		data.DurationMS = 0
	}
	return decision.Fact{ID: eventID, Data: data}
}

// concurrent returns how many steps of a run with the spec are solved at once.
func (r Rules) concurrent(spec event.RunSpec) int {
	if spec.MaxConcurrent > 0 {
		return min(spec.MaxConcurrent, r.MaxConcurrent)
	}
	return r.MaxConcurrent
}

func (d director) startTasks() []decision.Fact {
	limit := d.rules.concurrent(d.r.Spec)
	state := func(id string) plan.State {
		if t := d.p.Task(id); t.Retry == nil {
			return t.State
		}
		return plan.Running // it waits for its time, not for a slot
	}
	var list []decision.Fact
	for _, id := range plan.Start(d.p.list(), state, limit-d.p.count(plan.Running)) {
		list = append(list, d.startTask(d.p.Task(id)))
	}
	return list
}

func (d director) startTask(t *Task) decision.Fact {
	n := t.Attempt + 1
	work := fmt.Sprintf("%s.t.%s.%d", d.r.ID, t.ID, n)
	return decision.Fact{ID: work + ".started", Data: event.StepStartedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Step: t.Step, Attempt: n, MaxTries: d.tries(t),
		Part: event.Part{JobID: work, Stage: event.StageSolving, StepID: t.ID},
	}}
}

// solved continues the run once every task has an outcome.
func (d director) solved() []decision.Fact {
	done := d.p.count(plan.Done)
	switch {
	case done == 0:
		return []decision.Fact{d.noneSolved()}
	case d.r.Spec.Mode == event.ModePlan || len(d.p.Tasks) > 1:
		return []decision.Fact{d.startAggregate()}
	}
	return []decision.Fact{d.conclude(success, d.p.Tasks[0].Output, d.p.Tasks[0].MessageID)}
}

// conclude sums the run up, then ends it.
func (d director) conclude(status, answer, message string) decision.Fact {
	if d.p.Status == "" {
		return d.summed(status, answer)
	}
	return d.runCompleted(status, answer, message)
}

// noneSolved ends a run without any result, a step at a time.
func (d director) noneSolved() decision.Fact {
	entry := fault.Lookup(fault.TasksFailed)
	switch {
	case d.p.Status == "":
		return d.summed(failure, entry.Message)
	case !d.p.Reported:
		return decision.Fact{ID: d.r.ID + ".error", Data: event.ErrorData{
			RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Stage: event.StageSolving, Code: string(entry.Code),
			Message: entry.Message, Operation: "solve_tasks", Recovery: "retry",
		}}
	}
	return d.runFailed(entry, entry.Message, d.report())
}

// report lists the outcome of each task, for a run without any other answer.
func (d director) report() string {
	var b strings.Builder
	b.WriteString("None of the tasks could be solved.")
	for _, t := range d.p.Tasks {
		fmt.Fprintf(&b, "\n- %s: %s", t.Title, orElse(t.Error, stateNames[t.State]))
	}
	return clip(b.String(), maxSummary*8)
}

// maxSummary bounds the summary of a run, in bytes: a line or two for people.
const maxSummary = 500

func (d director) summed(status, summary string) decision.Fact {
	p := d.p
	data := event.PipelineCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Status: status, TotalMS: since(d.now, d.r.Started),
		PlanMS: since(p.planEnded, p.planStarted), SolveMS: since(p.solveEnded, p.solveStarted), Summary: clip(summary, maxSummary),
	}
	if p.Phase == Aggregating {
		data.AggregateMS = since(p.aggregateEnded, p.aggregateStarted)
	}
	return decision.Fact{ID: d.r.ID + ".summed", Data: data}
}

func (d director) status() string {
	if d.p.count(plan.Done) == len(d.p.Tasks) {
		return success
	}
	return partialSuccess
}

func (d director) startAggregate() decision.Fact {
	work := fmt.Sprintf("%s.aggregate.%d", d.r.ID, d.p.Aggregate+1)
	done := d.p.count(plan.Done)
	return decision.Fact{ID: work + ".started", Data: event.AggregateStartedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, StepCount: len(d.p.Tasks), Completed: done, Failed: len(d.p.Tasks) - done,
		MaxTries: d.p.Aggregate + d.triesLeft(),
		Part:     event.Part{JobID: work, Stage: event.StageAggregation},
	}}
}

func (d director) aggregate() []decision.Fact {
	p, w := d.p, d.p.Job
	switch {
	case p.Combined:
		return []decision.Fact{d.conclude(d.status(), p.Result, p.ResultID)}
	case p.Retry != nil:
		if d.now.Before(p.Retry.Due) {
			return nil
		}
		return []decision.Fact{d.startAggregate()}
	case w == nil || w.Ended:
		return []decision.Fact{d.startAggregate()}
	case w.Failure != nil:
		if retry, ok := d.retry(w, p.retries+1, d.rules.Tries); ok {
			return append(discards(w), retry)
		}
		if p.Status == "" {
			return append(stops(w), d.summed(failure, w.Failure.Message))
		}
		return []decision.Fact{d.runFailed(fault.Lookup(fault.Code(w.Failure.Code)), w.Failure.Message, "")}
	}
	m, ok := w.final()
	if !ok {
		return nil
	}
	return []decision.Fact{{ID: w.ID + ".completed", Data: event.AggregateCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, MessageID: m.ID, Result: m.Content, Bytes: len(m.Content),
		Usage: w.tally.Usage(), DurationMS: since(d.now, w.Started), Part: w.Part,
	}}}
}
