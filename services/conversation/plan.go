package conversation

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/usage"
	"github.com/waggle-dev/waggle/services/plan"
)

// planFolds are the effects of events about planned runs.
var planFolds = map[event.Type]effect{
	event.PlanStarted: with(begins((*Plan).started, func(d event.PlanStartedData) string { return d.RunID })),
	event.PlanCompleted: with(
		onPlan((*Plan).completed, func(d event.PlanCompletedData) string { return d.RunID }),
		onTotals(func(t *usage.Totals, d event.PlanCompletedData) { t.Steps += len(d.Steps) }),
	),
	event.PlanInvalid: with(
		marked[event.PlanInvalidData],
		onPlan((*Plan).invalid, func(d event.PlanInvalidData) string { return d.RunID }),
	),
	event.PlanCancelled: with(
		marked[event.PlanCancelledData],
		onPlan((*Plan).cancelled, func(d event.PlanCancelledData) string { return d.RunID }),
	),

	event.StepStarted:   with(begins((*Plan).stepStarted, func(d event.StepStartedData) string { return d.RunID })),
	event.StepCompleted: with(onStep((*Plan).stepCompleted, func(d event.StepCompletedData) (run, step string) { return d.RunID, d.StepID })),
	event.StepFailed:    with(onStep((*Plan).stepFailed, func(d event.StepFailedData) (run, step string) { return d.RunID, d.StepID })),
	event.StepCancelled: with(
		marked[event.StepCancelledData],
		onStep((*Plan).stepCancelled, func(d event.StepCancelledData) (run, step string) { return d.RunID, d.StepID }),
	),
	event.StepRestarted: with(
		marked[event.StepRestartedData],
		onStep((*Plan).stepRestarted, func(d event.StepRestartedData) (run, step string) { return d.RunID, d.StepID }),
		onRun((*Run).stepRestarted, func(d event.StepRestartedData) string { return d.RunID }),
	),
	event.RunProgressed:  with(onStep((*Plan).progressed, func(d event.RunProgressedData) (run, step string) { return d.RunID, d.StepID })),
	event.RetryScheduled: with(scheduled),

	event.AggregateStarted:   with(begins((*Plan).aggregateStarted, func(d event.AggregateStartedData) string { return d.RunID })),
	event.AggregateCompleted: with(onPlan((*Plan).aggregateCompleted, func(d event.AggregateCompletedData) string { return d.RunID })),
	event.PipelineCompleted:  with(onPlan((*Plan).summed, func(d event.PipelineCompletedData) string { return d.RunID })),
	event.Error:              with(errorShown),
}

// Phase is how far a planned run has come.
type Phase string

// The phases of a planned run, in their order.
const (
	Planning    Phase = "planning"
	Confirming  Phase = "confirmation"
	Solving     Phase = "solving"
	Aggregating Phase = "aggregation"
	Done        Phase = "done"
)

// Plan is the part of a run that plans, solves the steps, and aggregates their results.
type Plan struct {
	Phase     Phase
	Question  string
	Context   string   // JSON, as the client wrote it
	Plans     int      // begun
	Invalid   []string // why the planner's texts were invalid plans, since the last request for a new one
	Feedback  []string // comments of people on earlier plans
	PlanID    string
	Planned   bool // the newest plan is valid, and Steps are its steps
	Summary   string
	Steps     []*Step   // in the order of the plan
	Job       *Job      `json:"-"` // makes the plan or aggregate, or has made the last one
	JobID     string    // of Job
	Asked     *Question `json:"-"` // the newest question whether the plan is carried out
	Result    string    // of the aggregate
	ResultID  string    // the message that holds it
	Status    string    // as summed up
	Aggregate int       // begun
	Retry     *Retry    // the plan or aggregate waits for another try
	Dropped   string    // why the plan will not be carried out; the run's end is to come
	Reported  bool      // people were told that no step could be solved
	Combined  bool      // the newest aggregate exists

	Retries                        int // of the plan or aggregate since the last that worked
	PlanStarted, PlanEnded         time.Time
	SolveStarted, SolveEnded       time.Time
	AggregateBegan, AggregateEnded time.Time
}

func (p *Plan) started(e event.Event, d event.PlanStartedData) *Job {
	p.Phase, p.Plans, p.PlanID, p.Question, p.Context = Planning, d.Number, d.PlanID, d.Question, string(d.Context)
	p.Planned, p.Steps, p.Summary, p.Retry = false, nil, "", nil
	p.withdraw()
	if p.PlanStarted.IsZero() {
		p.PlanStarted = e.Time
	}
	return p.make(&Job{
		ID: d.JobID, RunID: d.RunID, ExecutionID: d.ExecutionID, Part: d.Part, StartedBy: e.ID, Started: e.Time, Try: d.Number, MaxTries: d.MaxTries,
	})
}

// make begins the job that makes the plan or the aggregate.
func (p *Plan) make(j *Job) *Job {
	p.Job, p.JobID = j, j.ID
	return j
}

func (p *Plan) completed(e event.Event, d event.PlanCompletedData) {
	p.endJob()
	p.Planned, p.Steps, p.Summary = true, newSteps(d.Steps), d.Summary
	p.PlanEnded, p.Retries = e.Time, 0
}

func (p *Plan) invalid(_ event.Event, d event.PlanInvalidData) {
	if d.InputID == "" {
		p.endJob()
		p.Invalid = append(p.Invalid, d.Message)
	}
}

func (p *Plan) cancelled(_ event.Event, d event.PlanCancelledData) {
	p.endJob()
	p.withdraw()
	p.Planned, p.Retry, p.Invalid, p.Retries = false, nil, nil, 0
	if d.Reason != reasonReplan {
		p.Dropped = d.Reason
	}
	if d.Feedback != "" {
		p.Feedback = append(p.Feedback, d.Feedback)
	}
}

// stepStarted returns the job of the step, nil if the plan has no such step.
func (p *Plan) stepStarted(e event.Event, d event.StepStartedData) *Job {
	t := p.Step(d.StepID)
	if t == nil {
		return nil
	}
	p.Phase = Solving
	if p.SolveStarted.IsZero() {
		p.SolveStarted = e.Time
	}
	return t.start(e, d)
}

func (p *Plan) stepCompleted(t *Step, e event.Event, d event.StepCompletedData) {
	t.settle(plan.Done)
	t.Output, t.MessageID, t.Error = d.Output, d.MessageID, ""
	p.SolveEnded = e.Time
}

func (p *Plan) stepFailed(t *Step, e event.Event, d event.StepFailedData) {
	t.settle(plan.Failed)
	t.Error = d.Message
	p.SolveEnded = e.Time
}

func (p *Plan) stepCancelled(t *Step, e event.Event, d event.StepCancelledData) {
	t.settle(plan.Cancelled)
	t.Error = "cancelled: " + d.Reason
	p.SolveEnded = e.Time
}

// stepRestarted makes a step wait for its turn again.
func (p *Plan) stepRestarted(t *Step, _ event.Event, d event.StepRestartedData) {
	if p.Phase == Aggregating {
		p.endJob()
		p.Retry = nil
	}
	p.Phase = Solving
	t.restart(d)
}

func (p *Plan) progressed(t *Step, _ event.Event, _ event.RunProgressedData) {
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
		p.Retries++
		return nil
	}
	t := p.Step(d.StepID)
	if t == nil {
		return noStep(d.RunID)
	}
	t.settle(plan.Waiting)
	t.Retry = again
	return nil
}

func (p *Plan) aggregateStarted(e event.Event, d event.AggregateStartedData) *Job {
	p.Phase, p.Retry, p.Combined = Aggregating, nil, false
	p.Aggregate++
	p.AggregateBegan = e.Time
	return p.make(&Job{
		ID: d.JobID, RunID: d.RunID, ExecutionID: d.ExecutionID, Part: d.Part, StartedBy: e.ID, Started: e.Time, Try: p.Aggregate, MaxTries: d.MaxTries,
	})
}

func (p *Plan) aggregateCompleted(e event.Event, d event.AggregateCompletedData) {
	p.endJob()
	p.Result, p.ResultID, p.AggregateEnded, p.Combined = d.Result, d.MessageID, e.Time, true
}

func (p *Plan) summed(_ event.Event, d event.PipelineCompletedData) { p.Status = d.Status }

// errorShown notes that people were shown why no step could be solved.
func errorShown(s *State, _ event.Event, d event.ErrorData) error {
	if r := s.Run(d.RunID); r != nil && r.Plan != nil {
		r.Plan.Reported = true
	}
	return nil
}

// answered takes the answer to it, which may change the steps.
func (p *Plan) answered(d event.InputAnsweredData) {
	if d.Decision == event.DecisionModify {
		p.Steps = newSteps(d.Steps)
	}
}

// endJob ends the plan or aggregate that is being made.
func (p *Plan) endJob() {
	if p.Job != nil {
		p.Job.Ended = true
	}
}

// withdraw closes the open question.
func (p *Plan) withdraw() {
	if p.Asked != nil {
		p.Asked.Over = true
	}
}

// Step returns the step with the id, or nil.
func (p *Plan) Step(id string) *Step {
	for _, t := range p.Steps {
		if t.ID == id {
			return t
		}
	}
	return nil
}

func (p *Plan) list() []event.Step {
	out := make([]event.Step, len(p.Steps))
	for i, t := range p.Steps {
		out[i] = t.Step
	}
	return out
}

func (p *Plan) state(id string) plan.State { return p.Step(id).State }

func (p *Plan) count(want plan.State) int {
	n := 0
	for _, t := range p.Steps {
		if t.State == want {
			n++
		}
	}
	return n
}

// open reports whether some step has no outcome yet.
func (p *Plan) open() bool {
	for _, t := range p.Steps {
		if !t.Final() {
			return true
		}
	}
	return false
}

// link finds the job of a stored plan. It reports whether that is missing.
func (p *Plan) link(known jobs) (missing bool) {
	p.Job = known[p.JobID]
	return p.Job == nil && p.JobID != ""
}

// rawOf returns the document of a text, nil without one.
func rawOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}
