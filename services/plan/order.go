package plan

import (
	"cmp"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// State is how far a task is.
type State int

// The states of a task.
const (
	Waiting   State = iota // it may start once its dependencies are done
	Running                // it takes up a slot
	Done                   // it has its result
	Failed                 // its attempts are used up
	Cancelled              // it will not be solved
)

// Start returns the ids of the tasks that may start now, at most free of them: they
// wait, and all their dependencies are done. A lower priority comes first, then the
// order of the list.
func Start(tasks []event.Step, state func(id string) State, free int) []string {
	var ready []event.Step
	for _, t := range tasks {
		if state(t.ID) == Waiting && !slices.ContainsFunc(t.Dependencies, func(d string) bool { return state(d) != Done }) {
			ready = append(ready, t)
		}
	}
	slices.SortStableFunc(ready, func(a, b event.Step) int { return cmp.Compare(a.Priority, b.Priority) })
	var out []string
	for _, t := range ready[:min(len(ready), max(free, 0))] {
		out = append(out, t.ID)
	}
	return out
}

// Doomed returns, in the order of the list, the waiting tasks that can never start:
// something that they depend on has failed, was cancelled, or is doomed itself.
func Doomed(tasks []event.Step, state func(id string) State) []string {
	lost := map[string]bool{}
	for _, t := range tasks {
		s := state(t.ID)
		lost[t.ID] = s == Failed || s == Cancelled
	}
	doomed := map[string]bool{}
	spread(tasks, func(t event.Step) bool {
		if doomed[t.ID] || state(t.ID) != Waiting || !slices.ContainsFunc(t.Dependencies, func(d string) bool { return lost[d] }) {
			return false
		}
		doomed[t.ID], lost[t.ID] = true, true
		return true
	})
	return chosen(tasks, doomed)
}

// Dependants returns, in the order of the list, the tasks that depend on the task
// with the id, directly or through others.
func Dependants(tasks []event.Step, id string) []string {
	reached := map[string]bool{id: true}
	spread(tasks, func(t event.Step) bool {
		if reached[t.ID] || !slices.ContainsFunc(t.Dependencies, func(d string) bool { return reached[d] }) {
			return false
		}
		reached[t.ID] = true
		return true
	})
	delete(reached, id)
	return chosen(tasks, reached)
}

// spread offers every task to f until f accepts none.
func spread(tasks []event.Step, f func(event.Step) bool) {
	for again := true; again; {
		again = false
		for _, t := range tasks {
			again = f(t) || again
		}
	}
}

func chosen(tasks []event.Step, which map[string]bool) []string {
	var out []string
	for _, t := range tasks {
		if which[t.ID] {
			out = append(out, t.ID)
		}
	}
	return out
}
