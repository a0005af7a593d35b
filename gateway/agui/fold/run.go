package fold

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/waggle-dev/waggle/gateway/internal/jobs"
	"github.com/waggle-dev/waggle/gateway/narrate"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// run is one run of Waggle: its stretches, and everything that is open in it.
type run struct {
	id       string
	first    string   // the id of its first stretch
	stretch  string   // the id of the stretch that is open; empty = none
	last     string   // the id of the newest stretch
	ids      []string // of all stretches
	over     bool     // it has ended
	end      *ending
	deferred []Question // answers that came between two stretches

	steps []string // that are open, in the order in which they began
	subs  []*sub   // that have begun and have no result, in the order in which they began
	texts []*text  // messages that are open
	calls map[string]call
	used  map[string]int // how often a subagent's id was used in the stretch

	jobs      jobs.Jobs
	plan      *plan
	solving   bool // tasks may start
	limit     int  // tasks at once
	questions []Question
	acts      []*activity
	usage     []wire.TokenUsage  // of the stretch
	said      map[string]bool    // messages without an owner that have text
	thoughts  map[string]thought // by open message
}

// Question is one that the run has asked.
type Question struct {
	wire.Interrupt
	Scope  string
	Digest string // of scope tool: an approval holds for exactly this call
	Over   bool   // it was answered, or its time has passed
	run    string // that asks
	// options are the answers that an agent takes; none: any.
	options  []json.RawMessage
	editable bool // the answer may change the arguments of the call
	// The answer, empty without one.
	Decision, By, ClientID string
	changed                json.RawMessage // the arguments that the call runs with instead
}

func (q Question) status() string {
	switch {
	case !q.Over:
		return "open"
	case q.Decision == "":
		return "expired"
	}
	return "answered"
}

// sub is a subagent.
type sub struct {
	id, name, description string
	work                  string // the job
	parent                string // the job that it is done for; empty = the run itself
	suspended             bool   // its stretch has ended
}

// text is a message that is open.
type text struct {
	id, sub   string
	reasoning bool
	body      []byte
	stop      string // why it is not complete
}

// thought is how much of the reasoning of a message was shown. It is shown in parts: one ends where the message's text continues.
type thought struct {
	parts int // that have begun
	shown int // bytes of the whole

	plan narrate.Planner // of a planner's message
}

// noText stands for a message that is not open.
var noText = &text{}

// call is a tool call that was shown.
type call struct {
	sub    string
	run    string // the stretch
	digest string // of the tool and the arguments that were shown
}

// ending is how a stretch ended.
type ending struct {
	boundary *wire.Boundary
	failure  *wire.Failure
}

// activity is one of the run, with its newest content. The content is not modified.
type activity struct {
	id, kind, sub string
	content       any
	size          int    // of the content, about
	within        string // the newest stretch that has shown the whole of it
}

// defaultLimit is how many tasks of a run are solved at once where its log does not say so.
const defaultLimit = 10

func newRun(d event.RunStartedData) *run {
	r := &run{
		id: d.RunID, first: d.MessageID, calls: map[string]call{}, used: map[string]int{}, jobs: jobs.Jobs{}, said: map[string]bool{}, thoughts: map[string]thought{},
		limit: defaultLimit, solving: d.Mode == event.ModeSteps,
	}
	if d.Mode == event.ModeChat {
		r.jobs[d.RunID] = jobs.Job{}
	}
	return r
}

func (r *run) clone() *run {
	if r == nil {
		return nil
	}
	c := *r
	c.ids = slices.Clone(r.ids)
	c.deferred, c.steps, c.questions, c.usage = slices.Clone(r.deferred), slices.Clone(r.steps), slices.Clone(r.questions), slices.Clone(r.usage)
	c.calls, c.used, c.jobs, c.said = maps.Clone(r.calls), maps.Clone(r.used), maps.Clone(r.jobs), maps.Clone(r.said)
	c.thoughts = maps.Clone(r.thoughts)
	c.subs, c.texts, c.acts, c.plan = each(r.subs), each(r.texts), each(r.acts), r.plan.clone()
	for _, x := range c.texts {
		x.body = slices.Clone(x.body)
	}
	return &c
}

// each copies what the pointers point to.
func each[T any](list []*T) []*T {
	out := make([]*T, len(list))
	for i, p := range list {
		v := *p
		out[i] = &v
	}
	return out
}

// interrupts returns the open questions to people.
func (r *run) interrupts() []wire.Interrupt {
	var out []wire.Interrupt
	for _, q := range r.questions {
		if !q.Over && q.Scope != event.ScopeClientTool {
			out = append(out, q.Interrupt)
		}
	}
	return out
}

// awaited returns the open questions to people that a job waits for.
func (r *run) awaited(name string) (out []string) {
	for _, q := range r.interrupts() {
		if r.jobs[name].WaitsFor(q.ID) {
			out = append(out, q.ID)
		}
	}
	return out
}

// pending returns the calls that the client has to carry out.
func (r *run) pending() []string {
	var out []string
	for _, q := range r.questions {
		if !q.Over && q.Scope == event.ScopeClientTool {
			out = append(out, q.ToolCallID)
		}
	}
	return out
}

// moves reports whether something of the run continues without an answer of people.
func (r *run) moves() bool {
	if len(r.interrupts())+len(r.pending()) == 0 {
		return true
	}
	works, running := r.jobs.Work()
	if works {
		return true
	}
	return r.solving && running < r.limit && r.plan.due()
}

// text returns an open message.
func (r *run) text(id string) *text {
	if r != nil {
		for _, x := range r.texts {
			if x.id == id {
				return x
			}
		}
	}
	return noText
}

// subOf returns the subagent that a piece of work belongs to, empty for the run itself.
func (r *run) subOf(p event.Part) string {
	if p.Stage != event.StageSolving {
		return ""
	}
	return p.JobID
}

func (r *run) activity(id string) *activity {
	for _, a := range r.acts {
		if a.id == id {
			return a
		}
	}
	return nil
}

// Statuses of a task of a plan.
const (
	taskPending   = "pending"
	taskRunning   = "running"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// plan is the content of the activity waggle.plan.
type plan struct {
	PlanID    string `json:"planId"`
	Summary   string `json:"summary,omitempty"`
	Tasks     []task `json:"tasks"`
	Completed int    `json:"completed"`
	Failed    int    `json:"failed"`
	Cancelled int    `json:"cancelled"`
	Total     int    `json:"total"`
}

type task struct {
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Description  string   `json:"description,omitempty"`
	Dependencies []string `json:"dependencies,omitempty"`
	Status       string   `json:"status"`
}

func (p *plan) clone() *plan {
	if p == nil {
		return nil
	}
	c := *p
	c.Tasks = slices.Clone(p.Tasks)
	return &c
}

func newPlan(id, summary string, steps []event.Step) *plan {
	p := &plan{PlanID: id, Summary: summary, Tasks: []task{}, Total: len(steps)}
	for _, s := range steps {
		p.Tasks = append(p.Tasks, taskOf(s))
	}
	return p
}

func taskOf(s event.Step) task {
	return task{ID: s.ID, Title: s.Title, Description: s.Description, Dependencies: s.Dependencies, Status: taskPending}
}

func (p *plan) index(id string) int {
	if p == nil {
		return -1
	}
	return slices.IndexFunc(p.Tasks, func(t task) bool { return t.ID == id })
}

// due reports whether a task can start.
func (p *plan) due() bool {
	if p == nil {
		return false
	}
	return slices.ContainsFunc(p.Tasks, func(t task) bool {
		return t.Status == taskPending && !slices.ContainsFunc(t.Dependencies, func(id string) bool {
			i := p.index(id)
			return i < 0 || p.Tasks[i].Status != taskCompleted
		})
	})
}

// over reports whether all tasks have an outcome.
func (p *plan) over() bool {
	return p == nil || !slices.ContainsFunc(p.Tasks, func(t task) bool { return t.Status == taskPending || t.Status == taskRunning })
}

// counts are the outcomes of the tasks.
func (p *plan) counts() (completed, failed, cancelled int) {
	for _, t := range p.Tasks {
		switch t.Status {
		case taskCompleted:
			completed++
		case taskFailed:
			failed++
		case taskCancelled:
			cancelled++
		}
	}
	return completed, failed, cancelled
}

func (p *plan) activity() string { return "plan-" + p.PlanID }
