package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/plan"
)

// Retry is work that waits for another try.
type Retry struct {
	Since time.Time
	Due   time.Time
	Error string
}

// Task is a piece of a plan and how far it has come.
type Task struct {
	event.Step
	State     plan.State
	Attempt   int // begun
	Restarts  int
	Max       int // attempts that it may have; 0 = the rules' limit
	Work      *Work
	MessageID string // the message that holds Output
	Output    string
	Error     string
	Started   time.Time // of the newest attempt
	Retry     *Retry
	Counted   bool // its outcome is in the run's progress
}

func (t *Task) start(e event.Event, d event.StepStartedData) {
	t.State, t.Attempt, t.Started, t.Retry = plan.Running, d.Attempt, e.Time, nil
	t.Work = &Work{
		ID: d.JobID, RunID: d.RunID, ExecutionID: d.ExecutionID, Part: d.Part, StartedBy: e.ID, Started: e.Time, Try: d.Attempt, MaxTries: d.MaxTries,
	}
}

func (t *Task) restart(d event.StepRestartedData) {
	t.settle(plan.Waiting)
	t.Restarts++
	t.Output = ""
	if d.Reason != restartAfterError {
		t.Max = d.MaxAttempts
	}
}

func (t *Task) settle(to plan.State) {
	t.State, t.Retry, t.Counted = to, nil, false
	if t.Work != nil {
		t.Work.Ended = true
	}
}

// Final reports whether the task has an outcome.
func (t *Task) Final() bool {
	return t.State == plan.Done || t.State == plan.Failed || t.State == plan.Cancelled
}

func (t *Task) result() Result {
	return Result{Task: t.Step, Status: stateNames[t.State], Output: t.Output, Error: t.Error}
}

func newTasks(list []event.Step) []*Task {
	out := make([]*Task, len(list))
	for i, t := range list {
		out[i] = &Task{Step: t}
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
