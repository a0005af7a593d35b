// Package plan parses, checks and edits plans, and returns the tasks that may start.
//
// It is pure: no clock, no randomness and no I/O. It does not change its arguments, and its results
// share no mutable memory with them.
package plan

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// MaxTasks is the most tasks that a list may have. The protocol sets it.
	MaxTasks = 100
	// MaxTitle is the longest title, in characters: one line on a screen.
	MaxTitle = 200
	// MaxBytes bounds the JSON of a whole list. An event holds 256 KiB, and it says
	// more than its tasks: a question of 10,000 characters, a summary, reasons.
	MaxBytes = 128 << 10

	// maxSummary and maxReasoning bound, in bytes, what else is kept of a plan: some
	// paragraphs. JSON may make six times as much of it, which still fits beside the list.
	maxSummary   = 4 << 10
	maxReasoning = 8 << 10
	// maxProblems is how many problems one text names: enough for a model to correct
	// them all at once, few enough to be read.
	maxProblems = 5
	// maxShown bounds the quotation of a foreign text in an error, in characters; maxCycle bounds
	// the tasks of a cycle that an error names.
	maxShown = 64
	maxCycle = 12
)

// Plan is a list of tasks with its summary and reasons.
type Plan struct {
	Tasks     []event.Step
	Summary   string
	Reasoning string
}

var validID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

// Check reports whether the tasks can be solved: the list has 1 to MaxTasks tasks, with
// well-formed, unique ids and titles, and dependencies that name other tasks of the list without a
// cycle. The error is a PLAN_INVALID fault with the corrections to make; its field is the first
// invalid one.
func Check(tasks []event.Step) error {
	p := &problems{}
	switch {
	case len(tasks) == 0:
		p.add("tasks", "the list is empty: give at least one task")
		return p.fault()
	case len(tasks) > MaxTasks:
		p.add("tasks", "the list has %d tasks: %d are allowed", len(tasks), MaxTasks)
		return p.fault()
	}
	at := positions(tasks)
	for i := range tasks {
		p.task(tasks, at, i)
	}
	if len(p.list) == 0 {
		if c := cycle(tasks, at); c != nil {
			p.add("tasks", "tasks wait for each other in a circle: %s", arrows(c))
		}
	}
	if len(p.list) == 0 {
		p.size(tasks)
	}
	return p.fault()
}

// positions maps each id to the first task that has it.
func positions(tasks []event.Step) map[string]int {
	at := make(map[string]int, len(tasks))
	for i, t := range tasks {
		if _, taken := at[t.ID]; !taken {
			at[t.ID] = i
		}
	}
	return at
}

// problems collects the problems of a list.
type problems struct {
	field string
	list  []string
	more  int
}

func (p *problems) add(field, format string, args ...any) {
	if p.field == "" {
		p.field = field
	}
	if len(p.list) == maxProblems {
		p.more++
		return
	}
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// fault returns nil if nothing was wrong.
func (p *problems) fault() error {
	if len(p.list) == 0 {
		return nil
	}
	text := strings.Join(p.list, "; ")
	if p.more > 0 {
		text += fmt.Sprintf("; and %d more", p.more)
	}
	return invalid(p.field, "%s.", text)
}

// invalid returns the fault of a list that cannot be solved.
func invalid(field, format string, args ...any) error {
	return fault.Newf(fault.PlanInvalid, format, args...).At(field)
}

func (p *problems) task(tasks []event.Step, at map[string]int, i int) {
	t := tasks[i]
	field := func(member string) string { return "tasks[" + strconv.Itoa(i) + "]." + member }
	switch {
	case !validID.MatchString(t.ID):
		p.add(field("id"), "task %d has the id %s: an id has 1 to 128 letters, digits, _ and -", i+1, show(t.ID))
	case at[t.ID] != i:
		p.add(field("id"), "tasks %d and %d have the same id %s", at[t.ID]+1, i+1, show(t.ID))
	}
	switch {
	case strings.TrimSpace(t.Title) == "":
		p.add(field("title"), "task %s has no title", show(t.ID))
	case utf8.RuneCountInString(t.Title) > MaxTitle:
		p.add(field("title"), "the title of task %s is longer than %d characters: put the details into the description", show(t.ID), MaxTitle)
	}
	for _, d := range t.Dependencies {
		_, known := at[d]
		switch {
		case d == t.ID:
			p.add(field("dependencies"), "task %s depends on itself", show(t.ID))
		case !known:
			p.add(field("dependencies"), "task %s depends on %s, which is not in the list", show(t.ID), show(d))
		}
	}
}

func (p *problems) size(tasks []event.Step) {
	raw, err := json.Marshal(tasks)
	switch {
	case err != nil:
		p.add("tasks", "a context is not valid JSON")
	case len(raw) > MaxBytes:
		p.add("tasks", "the list has %d bytes of JSON: %d are allowed; say less, or split it", len(raw), MaxBytes)
	}
}

// show quotes a text, cut to a length that fits into an error.
func show(s string) string {
	if r := []rune(s); len(r) > maxShown {
		s = string(r[:maxShown]) + "..."
	}
	return strconv.Quote(s)
}

// cycle returns the tasks of one cycle in the order in which they wait for each
// other, or nil. All dependencies are known.
func cycle(tasks []event.Step, at map[string]int) []string {
	const unseen, open, done = 0, 1, 2
	mark := make([]int, len(tasks))
	var path []int
	var visit func(i int) []string
	visit = func(i int) []string {
		mark[i] = open
		path = append(path, i)
		for _, d := range tasks[i].Dependencies {
			j := at[d]
			switch mark[j] {
			case open:
				return ids(tasks, path[slices.Index(path, j):])
			case unseen:
				if c := visit(j); c != nil {
					return c
				}
			}
		}
		mark[i], path = done, path[:len(path)-1]
		return nil
	}
	for i := range tasks {
		if mark[i] == unseen {
			if c := visit(i); c != nil {
				return c
			}
		}
	}
	return nil
}

func ids(tasks []event.Step, which []int) []string {
	out := make([]string, 0, len(which))
	for _, i := range which {
		out = append(out, tasks[i].ID)
	}
	return out
}

// arrows writes a cycle down: "a" needs "b" needs "a".
func arrows(c []string) string {
	var parts []string
	for i, s := range c {
		if i == maxCycle {
			parts = append(parts, "...")
			break
		}
		parts = append(parts, show(s))
	}
	return strings.Join(append(parts, show(c[0])), " needs ")
}
