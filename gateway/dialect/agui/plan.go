package agui

import (
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

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
