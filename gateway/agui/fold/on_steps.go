package fold

import (
	"fmt"

	"github.com/waggle-dev/waggle/gateway/internal/jobs"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Names of steps.
const (
	stepPlanning    = "planning"
	stepSolving     = "solving"
	stepAggregation = "aggregation"
)

// planned shows a plan.
func (t *Thread) planned(p *plan) {
	t.run.plan = p
	t.show(p.activity(), wire.ActivityPlan, "", p.clone())
}

// mark changes the status of a task.
func (t *Thread) mark(s event.Step, status string) {
	r := t.run
	if r.plan == nil { // a run of steps that the client gave
		r.plan = newPlan(r.id, "", nil)
	}
	p := r.plan
	i := p.index(s.ID)
	if i < 0 {
		p.Tasks, p.Total = append(p.Tasks, taskOf(s)), p.Total+1
		i = len(p.Tasks) - 1
		p.Tasks[i].Status = status
		t.show(p.activity(), wire.ActivityPlan, "", p.clone())
		return
	}
	if p.Tasks[i].Status == status {
		return
	}
	p.Tasks[i].Status = status
	patch := []wire.Operation{{Op: "replace", Path: fmt.Sprintf("/tasks/%d/status", i), Value: status}}
	completed, failed, cancelled := p.counts()
	for _, c := range []struct {
		path string
		have *int
		want int
	}{{"/completed", &p.Completed, completed}, {"/failed", &p.Failed, failed}, {"/cancelled", &p.Cancelled, cancelled}} {
		if *c.have != c.want {
			*c.have = c.want
			patch = append(patch, wire.Operation{Op: "replace", Path: c.path, Value: c.want})
		}
	}
	t.change(p.activity(), patch, p.clone())
}

func planStarted(t *Thread, d event.PlanStartedData) {
	t.ensure()
	t.step(stepPlanning)
	t.run.jobs[d.Job(d.RunID)] = jobs.Job{}
}

func planCompleted(t *Thread, d event.PlanCompletedData) {
	t.ensure()
	delete(t.run.jobs, d.Job(d.RunID))
	t.planned(newPlan(d.PlanID, d.Summary, d.Steps))
	t.stepped(stepPlanning)
}

func planInvalid(t *Thread, d event.PlanInvalidData) {
	t.ensure()
	t.custom(wire.CustomPlanInvalid, members("code", d.Code, "message", d.Message, "recovery", d.Recovery, "interruptId", d.InputID))
	if d.InputID == "" {
		t.stepped(stepPlanning)
	}
}

func planCancelled(t *Thread, d event.PlanCancelledData) {
	t.ensure()
	delete(t.run.jobs, d.Job(d.RunID))
	t.custom(wire.CustomPlanCancelled, members("planId", d.PlanID, "reason", d.Reason, "feedback", d.Feedback))
	t.stepped(stepPlanning)
	t.run.solving = false
}

func stepStarted(t *Thread, d event.StepStartedData) {
	t.ensure()
	r := t.run
	r.solving = true
	t.release(d.Step.ID)
	name := d.Job(d.RunID)
	r.jobs[name] = jobs.Job{Step: d.Step.ID}
	t.step(stepSolving)
	t.mark(d.Step, taskRunning)
	s := &sub{id: name, work: name, name: cutName(first(d.Step.Capability, "solver")), description: d.Step.Title}
	r.subs = append(r.subs, s)
	t.announce(s)
}

// release forgets the earlier jobs of a step.
func (t *Thread) release(stepID string) {
	for name, j := range t.run.jobs {
		if j.Step == stepID && stepID != "" {
			delete(t.run.jobs, name)
		}
	}
}

func stepCompleted(t *Thread, d event.StepCompletedData) {
	t.settle(d.Part, taskCompleted, func(b wire.Subagent) wire.Subagent {
		b.Type, b.Result, b.Outcome = wire.SubagentFinished, &wire.SubagentResult{Output: d.Output}, &wire.SubagentOutcome{Type: wire.OutcomeSuccess}
		return b
	})
}

func stepFailed(t *Thread, d event.StepFailedData) {
	t.settle(d.Part, taskFailed, failedSub(d.Message, d.Code))
}

func stepCancelled(t *Thread, d event.StepCancelledData) {
	t.settle(d.Part, taskCancelled, failedSub("Cancelled: "+d.Reason, "CANCELLED"))
}

// settle ends a task, and solving with the last one.
func (t *Thread) settle(p event.Part, status string, end func(wire.Subagent) wire.Subagent) {
	t.ensure()
	r := t.run
	for name, j := range r.jobs {
		if j.Step == p.StepID {
			t.endSub(name, end)
			delete(r.jobs, name)
		}
	}
	t.mark(event.Step{ID: p.StepID}, status)
	if r.plan.over() {
		t.stepped(stepSolving)
	}
}

// jobFailed ends the subagent of an attempt. Another event says whether the task has failed.
func jobFailed(t *Thread, d event.JobFailedData) {
	name := d.Job(d.RunID)
	t.endSub(name, failedSub(d.Message, d.Code))
	if d.StepID != "" && t.run.plan.index(d.StepID) >= 0 && t.run.jobs[name].Step == d.StepID {
		t.ensure()
		t.mark(event.Step{ID: d.StepID}, taskPending)
	}
}

func stepRestarted(t *Thread, d event.StepRestartedData) {
	t.ensure()
	for name, j := range t.run.jobs {
		if j.Step == d.StepID {
			t.endSub(name, failedSub("The task starts again: "+d.Reason, "CANCELLED"))
			t.run.jobs[name] = jobs.Job{Step: d.StepID} // it has not started yet
		}
	}
	t.mark(event.Step{ID: d.StepID}, taskPending)
}

func aggregateStarted(t *Thread, d event.AggregateStartedData) {
	t.ensure()
	t.stepped(stepSolving)
	t.step(stepAggregation)
	t.run.jobs[d.Job(d.RunID)] = jobs.Job{}
}

func aggregateCompleted(t *Thread, d event.AggregateCompletedData) {
	t.ensure()
	delete(t.run.jobs, d.Job(d.RunID))
	t.stepped(stepAggregation)
}

func jobStarted(t *Thread, d event.JobStartedData) { t.run.jobs.Start(d.Job(d.RunID)) }

func jobSuspended(t *Thread, d event.JobSuspendedData) {
	t.run.jobs.Suspend(d.Job(d.RunID), d.Inputs, func(id string) (over, allowed bool) {
		q, known := t.Question(id)
		return known && q.Over, q.Decision != event.DecisionReject && q.Decision != ""
	})
}
