package fold

import (
	"slices"

	"github.com/waggle-dev/waggle/gateway/internal/jobs"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// planID is the id of the part with the plan: a later plan of the run replaces it.
const planID = "plan"

// planned shows a plan.
func (t *Chat) planned(p *Plan) {
	t.ensure()
	r := t.run
	r.plan, r.steps = p, map[string]StepState{}
	t.emit(Chunk{Type: DataPlan, ID: planID, Data: *p})
	for _, s := range p.Steps {
		t.mark(StepState{StepID: s.ID, Title: s.Title, Status: stepPending})
	}
}

func planOf(id, summary string, steps []event.Step) *Plan {
	p := &Plan{PlanID: id, Summary: summary, Steps: []Step{}}
	for _, s := range steps {
		p.Steps = append(p.Steps, Step{ID: s.ID, Title: s.Title, Description: s.Description, Dependencies: s.Dependencies})
	}
	return p
}

// mark shows the new state of a step.
func (t *Chat) mark(s StepState) {
	if s.StepID == "" {
		return
	}
	s.Title = first(s.Title, t.run.steps[s.StepID].Title)
	if t.run.steps[s.StepID] == s {
		return
	}
	t.ensure()
	t.run.steps[s.StepID] = s
	t.emit(Chunk{Type: DataStep, ID: s.StepID, Data: s})
}

func planStarted(t *Chat, d event.PlanStartedData) {
	t.ensure()
	t.run.jobs[d.Job(d.RunID)] = jobs.Job{}
}

func planCompleted(t *Chat, d event.PlanCompletedData) {
	delete(t.run.jobs, d.Job(d.RunID))
	t.planned(planOf(d.PlanID, d.Summary, d.Steps))
}

func planInvalid(t *Chat, d event.PlanInvalidData) {
	t.ensure()
	t.emit(Chunk{Type: DataNotice, Transient: true, Data: Notice{Level: "warning", Code: d.Code, Message: d.Message}})
}

func planCancelled(t *Chat, d event.PlanCancelledData) {
	t.ensure()
	delete(t.run.jobs, d.Job(d.RunID))
	t.run.solving = false
}

func stepStarted(t *Chat, d event.StepStartedData) {
	r := t.run
	r.solving = true
	for name, j := range r.jobs { // its earlier ones
		if j.Step == d.Step.ID {
			delete(r.jobs, name)
		}
	}
	r.jobs[d.Job(d.RunID)] = jobs.Job{Step: d.Step.ID}
	if r.plan == nil || !slices.ContainsFunc(r.plan.Steps, func(s Step) bool { return s.ID == d.Step.ID }) { // the client gave the steps
		var steps []Step
		if r.plan != nil {
			steps = r.plan.Steps
		}
		p := planOf(r.id, "", []event.Step{d.Step})
		p.Steps = append(slices.Clone(steps), p.Steps...)
		r.plan = p
		t.ensure()
		t.emit(Chunk{Type: DataPlan, ID: planID, Data: *p})
	}
	t.mark(StepState{StepID: d.Step.ID, Title: d.Step.Title, Status: stepRunning})
}

func stepCompletes(t *Chat, d event.StepCompletedData) {
	t.settle(d.Part, StepState{Status: stepCompleted, Output: d.Output})
}

func stepFails(t *Chat, d event.StepFailedData) {
	t.settle(d.Part, StepState{Status: stepFailed, Message: d.Message})
}

func stepCancels(t *Chat, d event.StepCancelledData) {
	t.settle(d.Part, StepState{Status: stepCancelled, Message: d.Reason})
}

// settle ends a step.
func (t *Chat) settle(p event.Part, s StepState) {
	for name, j := range t.run.jobs {
		if j.Step == p.StepID {
			delete(t.run.jobs, name)
		}
	}
	s.StepID = p.StepID
	t.mark(s)
}

// jobFailed ends an attempt. Another event says whether the step has failed.
func jobFailed(t *Chat, d event.JobFailedData) {
	if d.StepID != "" && t.run.jobs[d.Job(d.RunID)].Step == d.StepID {
		t.mark(StepState{StepID: d.StepID, Status: stepPending})
	}
}

func stepRestarts(t *Chat, d event.StepRestartedData) {
	for name, j := range t.run.jobs {
		if j.Step == d.StepID {
			t.run.jobs[name] = jobs.Job{Step: d.StepID} // it has not started yet
		}
	}
	t.mark(StepState{StepID: d.StepID, Status: stepPending})
}

func aggregateStarted(t *Chat, d event.AggregateStartedData) {
	t.ensure()
	t.run.jobs[d.Job(d.RunID)] = jobs.Job{}
}

func aggregateCompleted(t *Chat, d event.AggregateCompletedData) {
	delete(t.run.jobs, d.Job(d.RunID))
}

func jobStarted(t *Chat, d event.JobStartedData) { t.run.jobs.Start(d.Job(d.RunID)) }

func jobSuspended(t *Chat, d event.JobSuspendedData) {
	t.run.jobs.Suspend(d.Job(d.RunID), d.Inputs, func(id string) (over, allowed bool) {
		i := t.run.question(id)
		return i >= 0 && t.run.questions[i].over, i >= 0 && t.run.questions[i].allowed
	})
}
