package conversation

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/plan"
)

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

	retries                          int // of the plan or aggregate since the last that worked
	planStarted, planEnded           time.Time
	solveStarted, solveEnded         time.Time
	aggregateStarted, aggregateEnded time.Time
}

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

// Final reports whether the task has an outcome.
func (t *Task) Final() bool {
	return t.State == plan.Done || t.State == plan.Failed || t.State == plan.Cancelled
}

// Input is a question to people.
type Input struct {
	ID       string
	RunID    string
	Asked    time.Time
	Timeout  time.Duration
	Answered *event.InputAnsweredData
	Expired  bool
	PlanID   string
	Over     bool // answered, expired or withdrawn

	CallID  string // it is about this tool call; empty: about a plan
	Tool    string
	Digest  string // of the call as it was shown
	Shown   string `json:",omitempty"` // digest of the tool as it was shown; empty: not known
	Schema  string `json:",omitempty"` // of the tool's arguments, while an answer may change them; empty: it may not
	Attempt int    // the worker's claim that asked
	Client  bool   // the client carries the call out
	Budget  bool   // it is about the budget of the run, or a day's quota

	Asking *Asking `json:",omitempty"` // an agent of the swarm asks; nil: none

	quota    *event.QuotaUse // of a question about a day's quota
	resource string          // of the quota
}

// Asking is a question of an agent of the swarm, as the log of its task has it.
type Asking struct {
	Work string // the job
	Task string // the log of the swarm's task
	Seq  uint64 // of the question in that log
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

func newTasks(list []event.Step) []*Task {
	out := make([]*Task, len(list))
	for i, t := range list {
		out[i] = &Task{Step: t}
	}
	return out
}
