package conversation

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/usage"
	"github.com/waggle-dev/waggle/services/plan"
)

// planFolds are the effects of events about planned runs.
var planFolds = map[event.Type]effect{
	event.PlanStarted:   with(onPlan(func(d event.PlanStartedData) string { return d.RunID }, (*Pipeline).started), begins(func(d event.PlanStartedData) string { return d.RunID }, func(p *Pipeline, _ event.PlanStartedData) *Work { return p.Job })),
	event.PlanCompleted: with(onPlan(func(d event.PlanCompletedData) string { return d.RunID }, (*Pipeline).completed), onTotals(func(t *usage.Totals, d event.PlanCompletedData) { t.Tasks += len(d.Steps) })),
	event.PlanInvalid:   with(marked[event.PlanInvalidData], onPlan(func(d event.PlanInvalidData) string { return d.RunID }, (*Pipeline).invalid)),
	event.PlanCancelled: with(marked[event.PlanCancelledData], onPlan(func(d event.PlanCancelledData) string { return d.RunID }, (*Pipeline).cancelled)),

	event.StepStarted:    with(onStep(func(d event.StepStartedData) string { return d.RunID }, func(d event.StepStartedData) string { return d.StepID }, (*Pipeline).stepStarted), begins(func(d event.StepStartedData) string { return d.RunID }, func(p *Pipeline, d event.StepStartedData) *Work { return p.Task(d.StepID).Work })),
	event.StepCompleted:  with(onStep(func(d event.StepCompletedData) string { return d.RunID }, func(d event.StepCompletedData) string { return d.StepID }, (*Pipeline).stepCompleted)),
	event.StepFailed:     with(onStep(func(d event.StepFailedData) string { return d.RunID }, func(d event.StepFailedData) string { return d.StepID }, (*Pipeline).stepFailed)),
	event.StepCancelled:  with(marked[event.StepCancelledData], onStep(func(d event.StepCancelledData) string { return d.RunID }, func(d event.StepCancelledData) string { return d.StepID }, (*Pipeline).stepCancelled)),
	event.StepRestarted:  with(marked[event.StepRestartedData], onStep(func(d event.StepRestartedData) string { return d.RunID }, func(d event.StepRestartedData) string { return d.StepID }, (*Pipeline).stepRestarted), onRun(func(d event.StepRestartedData) string { return d.RunID }, (*Run).stepRestarted)),
	event.RunProgressed:  with(onStep(func(d event.RunProgressedData) string { return d.RunID }, func(d event.RunProgressedData) string { return d.StepID }, (*Pipeline).progressed)),
	event.RetryScheduled: with(scheduled),

	event.AggregateStarted:   with(onPlan(func(d event.AggregateStartedData) string { return d.RunID }, (*Pipeline).aggregateStarted), begins(func(d event.AggregateStartedData) string { return d.RunID }, func(p *Pipeline, _ event.AggregateStartedData) *Work { return p.Job })),
	event.AggregateCompleted: with(onPlan(func(d event.AggregateCompletedData) string { return d.RunID }, (*Pipeline).aggregateCompleted)),
	event.PipelineCompleted:  with(onPlan(func(d event.PipelineCompletedData) string { return d.RunID }, (*Pipeline).summed)),
	event.Error:              with(errorShown),
}

// Phase is how far a pipeline run has come.
type Phase string

// The phases of a pipeline run, in their order.
const (
	Planning    Phase = "planning"
	Confirming  Phase = "confirmation"
	Solving     Phase = "solving"
	Aggregating Phase = "aggregation"
	Done        Phase = "done"
)

// Pipeline is the part of a run that plans, solves and aggregates.
type Pipeline struct {
	Phase     Phase
	Question  string
	Context   json.RawMessage
	Plans     int      // begun
	Invalid   []string // why the planner's texts were invalid plans, since the last request for a new one
	Feedback  []string // comments of people on earlier plans
	PlanID    string
	Planned   bool // the newest plan is valid, and Tasks are its tasks
	Summary   string
	Tasks     []*Task // in the order of the plan
	Job       *Work   // the plan or aggregate that is being made, or the last one
	Input     *Input  // the newest question
	Result    string  // of the aggregate
	ResultID  string  // the message that holds it
	Status    string  // as summed up
	Aggregate int     // begun
	Retry     *Retry  // the plan or aggregate waits for another try
	Dropped   string  // why the plan will not be carried out; the run's end is to come
	Reported  bool    // people were told that no task could be solved
	Combined  bool    // the newest aggregate exists

	retries                        int // of the plan or aggregate since the last that worked
	planStarted, planEnded         time.Time
	solveStarted, solveEnded       time.Time
	aggregateBegan, aggregateEnded time.Time
}

func (p *Pipeline) started(e event.Event, d event.PlanStartedData) {
	p.Phase, p.Plans, p.PlanID, p.Question, p.Context = Planning, d.Number, d.PlanID, d.Question, d.Context
	p.Planned, p.Tasks, p.Summary, p.Retry = false, nil, "", nil
	p.withdraw()
	if p.planStarted.IsZero() {
		p.planStarted = e.Time
	}
	p.Job = &Work{
		ID: d.JobID, RunID: d.RunID, ExecutionID: d.ExecutionID, Part: d.Part, StartedBy: e.ID, Started: e.Time, Try: d.Number, MaxTries: d.MaxTries,
	}
}

func (p *Pipeline) completed(e event.Event, d event.PlanCompletedData) {
	p.endJob()
	p.Planned, p.Tasks, p.Summary = true, newTasks(d.Steps), d.Summary
	p.planEnded, p.retries = e.Time, 0
}

func (p *Pipeline) invalid(_ event.Event, d event.PlanInvalidData) {
	if d.InputID == "" {
		p.endJob()
		p.Invalid = append(p.Invalid, d.Message)
	}
}

func (p *Pipeline) cancelled(_ event.Event, d event.PlanCancelledData) {
	p.endJob()
	p.withdraw()
	p.Planned, p.Retry, p.Invalid, p.retries = false, nil, nil, 0
	if d.Reason != reasonReplan {
		p.Dropped = d.Reason
	}
	if d.Feedback != "" {
		p.Feedback = append(p.Feedback, d.Feedback)
	}
}

func (p *Pipeline) stepStarted(t *Task, e event.Event, d event.StepStartedData) {
	p.Phase = Solving
	if p.solveStarted.IsZero() {
		p.solveStarted = e.Time
	}
	t.start(e, d)
}

func (p *Pipeline) stepCompleted(t *Task, e event.Event, d event.StepCompletedData) {
	t.settle(plan.Done)
	t.Output, t.MessageID, t.Error = d.Output, d.MessageID, ""
	p.solveEnded = e.Time
}

func (p *Pipeline) stepFailed(t *Task, e event.Event, d event.StepFailedData) {
	t.settle(plan.Failed)
	t.Error = d.Message
	p.solveEnded = e.Time
}

func (p *Pipeline) stepCancelled(t *Task, e event.Event, d event.StepCancelledData) {
	t.settle(plan.Cancelled)
	t.Error = "cancelled: " + d.Reason
	p.solveEnded = e.Time
}

// stepRestarted makes a step wait for its turn again.
func (p *Pipeline) stepRestarted(t *Task, _ event.Event, d event.StepRestartedData) {
	if p.Phase == Aggregating {
		p.endJob()
		p.Retry = nil
	}
	p.Phase = Solving
	t.restart(d)
}

func (p *Pipeline) progressed(t *Task, _ event.Event, _ event.RunProgressedData) {
	t.Counted = t.Final()
}

// scheduled has a step, or the plan or aggregate, wait for another try.
func scheduled(s *State, e event.Event, d event.RetryScheduledData) error {
	p, err := s.planOf(d.RunID)
	if err != nil {
		return err
	}
	again := &Retry{Since: e.Time, Due: e.Time.Add(time.Duration(d.RetryAfterMS) * time.Millisecond), Error: d.Message}
	if d.Stage != event.StageSolving {
		p.endJob()
		p.Retry = again
		p.retries++
		return nil
	}
	t := p.Task(d.StepID)
	if t == nil {
		return fmt.Errorf("step %q is in no plan of run %q", d.StepID, d.RunID)
	}
	t.settle(plan.Waiting)
	t.Retry = again
	return nil
}

func (p *Pipeline) aggregateStarted(e event.Event, d event.AggregateStartedData) {
	p.Phase, p.Retry, p.Combined = Aggregating, nil, false
	p.Aggregate++
	p.aggregateBegan = e.Time
	p.Job = &Work{
		ID: d.JobID, RunID: d.RunID, ExecutionID: d.ExecutionID, Part: d.Part, StartedBy: e.ID, Started: e.Time, Try: p.Aggregate, MaxTries: d.MaxTries,
	}
}

func (p *Pipeline) aggregateCompleted(e event.Event, d event.AggregateCompletedData) {
	p.endJob()
	p.Result, p.ResultID, p.aggregateEnded, p.Combined = d.Result, d.MessageID, e.Time, true
}

func (p *Pipeline) summed(_ event.Event, d event.PipelineCompletedData) { p.Status = d.Status }

// errorShown notes that people were shown why no step could be solved.
func errorShown(s *State, _ event.Event, d event.ErrorData) error {
	if r := s.Run(d.RunID); r != nil && r.Pipeline != nil {
		r.Pipeline.Reported = true
	}
	return nil
}

// asked opens the question whether the plan is carried out.
func (p *Pipeline) asked(in *Input) { p.Phase, p.Input = Confirming, in }

// answered takes the answer to it, which may change the steps.
func (p *Pipeline) answered(d event.InputAnsweredData) {
	if d.Decision == event.DecisionModify {
		p.Tasks = newTasks(d.Steps)
	}
}

// endJob ends the plan or aggregate that is being made.
func (p *Pipeline) endJob() {
	if p.Job != nil {
		p.Job.Ended = true
	}
}

// withdraw closes the open question.
func (p *Pipeline) withdraw() {
	if p.Input != nil {
		p.Input.Over = true
	}
}

// Task returns the task with the id, or nil.
func (p *Pipeline) Task(id string) *Task {
	for _, t := range p.Tasks {
		if t.ID == id {
			return t
		}
	}
	return nil
}

func (p *Pipeline) list() []event.Step {
	out := make([]event.Step, len(p.Tasks))
	for i, t := range p.Tasks {
		out[i] = t.Step
	}
	return out
}

func (p *Pipeline) state(id string) plan.State { return p.Task(id).State }

func (p *Pipeline) count(want plan.State) int {
	n := 0
	for _, t := range p.Tasks {
		if t.State == want {
			n++
		}
	}
	return n
}

// open reports whether some task has no outcome yet.
func (p *Pipeline) open() bool {
	for _, t := range p.Tasks {
		if !t.Final() {
			return true
		}
	}
	return false
}
