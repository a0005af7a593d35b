package conversation

import (
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/plan"
)

// aggregator decides on the end of a planned run: the aggregate, and the outcome.
type aggregator struct{ director }

// solved continues the run once every step has an outcome.
func (d aggregator) solved() []decision.Fact {
	done := d.p.count(plan.Done)
	switch {
	case done == 0:
		return []decision.Fact{d.noneSolved()}
	case d.r.Spec.Mode == event.ModePlan || len(d.p.Steps) > 1:
		return []decision.Fact{d.startAggregate()}
	}
	return []decision.Fact{d.conclude(success, d.p.Steps[0].Output, d.p.Steps[0].MessageID)}
}

// conclude sums the run up, then ends it.
func (d aggregator) conclude(status, answer, message string) decision.Fact {
	if d.p.Status == "" {
		return d.summed(status, answer)
	}
	return d.runCompleted(status, answer, message)
}

// noneSolved ends a run without any result, one event at a time.
func (d aggregator) noneSolved() decision.Fact {
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

// report lists the outcome of each step, for a run without any other answer.
func (d aggregator) report() string {
	var b strings.Builder
	b.WriteString("None of the tasks could be solved.")
	for _, t := range d.p.Steps {
		fmt.Fprintf(&b, "\n- %s: %s", t.Title, orElse(t.Error, stateNames[t.State]))
	}
	return clip(b.String(), maxSummary*8)
}

func (d aggregator) summed(status, summary string) decision.Fact {
	p := d.p
	data := event.PipelineCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Status: status, TotalMS: since(d.now, d.r.Started),
		PlanMS: since(p.PlanEnded, p.PlanStarted), SolveMS: since(p.SolveEnded, p.SolveStarted), Summary: clip(summary, maxSummary),
	}
	if p.Phase == Aggregating {
		data.AggregateMS = since(p.AggregateEnded, p.AggregateBegan)
	}
	return decision.Fact{ID: d.r.ID + ".summed", Data: data}
}

func (d aggregator) status() string {
	if d.p.count(plan.Done) == len(d.p.Steps) {
		return success
	}
	return partialSuccess
}

func (d aggregator) startAggregate() decision.Fact {
	work := fmt.Sprintf("%s.aggregate.%d", d.r.ID, d.p.Aggregate+1)
	done := d.p.count(plan.Done)
	return decision.Fact{ID: work + ".started", Data: event.AggregateStartedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, StepCount: len(d.p.Steps), Completed: done, Failed: len(d.p.Steps) - done,
		MaxTries: d.p.Aggregate + d.triesLeft(),
		Part:     event.Part{JobID: work, Stage: event.StageAggregation},
	}}
}

func (d aggregator) aggregate() []decision.Fact {
	p, j := d.p, d.p.Job
	switch {
	case p.Combined:
		return []decision.Fact{d.conclude(d.status(), p.Result, p.ResultID)}
	case p.Retry != nil:
		if d.now.Before(p.Retry.Due) {
			return nil
		}
		return []decision.Fact{d.startAggregate()}
	case j == nil || j.Ended:
		return []decision.Fact{d.startAggregate()}
	case j.Failure != nil:
		if retry, ok := d.retry(j, p.Retries+1, d.rules.Tries); ok {
			return append(discards(j), retry)
		}
		if p.Status == "" {
			return append(stops(j), d.summed(failure, j.Failure.Message))
		}
		return []decision.Fact{d.runFailed(fault.Lookup(fault.Code(j.Failure.Code)), j.Failure.Message, "")}
	}
	m, ok := j.final()
	if !ok {
		return nil
	}
	return []decision.Fact{{ID: j.ID + ".completed", Data: event.AggregateCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, MessageID: m.ID, Result: m.Content, Bytes: len(m.Content),
		Usage: j.Tally.Usage(), DurationMS: since(d.now, j.Started), Part: j.Part,
	}}}
}
