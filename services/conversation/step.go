package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/plan"
)

// Retry is a step, plan or aggregate that waits for another try.
type Retry struct {
	Since time.Time
	Due   time.Time
	Error string
}

// Step is a step of a plan and how far it has come.
type Step struct {
	event.Step
	State     plan.State
	Attempt   int // begun
	Restarts  int
	Max       int    // attempts that it may have; 0 = the rules' limit
	Job       *Job   `json:"-"` // its newest
	JobID     string // of Job
	MessageID string // the message that holds Output
	Output    string
	Error     string
	Started   time.Time // of the newest attempt
	Retry     *Retry
	Counted   bool // its outcome is in the run's progress
}

func (t *Step) start(e event.Event, d event.StepStartedData) *Job {
	t.State, t.Attempt, t.Started, t.Retry = plan.Running, d.Attempt, e.Time, nil
	t.Job = &Job{
		ID: d.JobID, RunID: d.RunID, ExecutionID: d.ExecutionID, Part: d.Part, StartedBy: e.ID, Started: e.Time, Try: d.Attempt, MaxTries: d.MaxTries,
	}
	t.JobID = d.JobID
	return t.Job
}

func (t *Step) restart(d event.StepRestartedData) {
	t.settle(plan.Waiting)
	t.Restarts++
	t.Output = ""
	if d.Reason != restartAfterError {
		t.Max = d.MaxAttempts
	}
}

func (t *Step) settle(to plan.State) {
	t.State, t.Retry, t.Counted = to, nil, false
	if t.Job != nil {
		t.Job.Ended = true
	}
}

// link finds the job of a stored step. It reports whether that is missing.
func (t *Step) link(known jobs) (missing bool) {
	t.Job = known[t.JobID]
	return t.Job == nil && t.JobID != ""
}

// Final reports whether the step has an outcome.
func (t *Step) Final() bool {
	return t.State == plan.Done || t.State == plan.Failed || t.State == plan.Cancelled
}

func (t *Step) result() Result {
	return Result{Step: t.Step, Status: stateNames[t.State], Output: t.Output, Error: t.Error}
}

func newSteps(list []event.Step) []*Step {
	out := make([]*Step, len(list))
	for i, t := range list {
		out[i] = &Step{Step: t}
	}
	return out
}

var stateNames = map[plan.State]string{
	plan.Waiting: "waiting", plan.Running: "running", plan.Done: "completed", plan.Failed: "failed", plan.Cancelled: "cancelled",
}

func stateOf(name string) plan.State {
	for state, n := range stateNames {
		if n == name {
			return state
		}
	}
	return plan.Waiting
}
