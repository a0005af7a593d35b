package assignment

import (
	"cmp"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Candidate is an agent that the service knows of. One that is neither online nor
// away is remembered only: a task may wait for it, but it holds none.
type Candidate struct {
	ID, Name     string
	Registered   bool // by a principal; false: the built-in agent
	Capabilities []string
	Online       bool      // it has a connection
	Away         bool      // it has none, but its place is kept for it, and with it its tasks
	Status       string    // of command.Participant
	Full         bool      // it takes no more tasks until it has ended one
	Load         int       // tasks that it has
	Since        time.Time // when it connected, or last changed
	Connection   string    // it has now
	Joined       time.Time // when it connected
	Knows        bool      // it has said which tasks of earlier connections it has:
	Holds        []string  // these
}

// Agents are the agents that the service knows of in a tenant.
type Agents interface {
	// Agent returns the agent with the id.
	Agent(id string) (Candidate, bool)
	// Walk calls f with the agents that have a connection and that Matches, in the order of Compare, until f returns false. f
	// must not call Agents.
	Walk(want event.TaskCreatedData, f func(Candidate) bool)
	// Some returns at most n of the agents that Matches, with or without a connection.
	Some(want event.TaskCreatedData, n int) []Candidate
}

// Choose returns the agent for the task: the one with the wanted id if it can take the task, else
// one with the wanted name, else, without a name, one with all wanted capabilities. Of several it
// takes the one with the best status, then the least loaded, then the longest connected. ok is
// false if none can take the task.
func Choose(want event.TaskCreatedData, agents Agents) (Candidate, bool) {
	return choose(want, agents, func(Candidate) bool { return true })
}

// choose is Choose among the agents that may have the task.
func choose(want event.TaskCreatedData, agents Agents, may func(Candidate) bool) (best Candidate, found bool) {
	if want.WantedID != "" {
		if a, ok := agents.Agent(want.WantedID); ok && rank(a) >= 0 && may(a) {
			return a, true
		}
	}
	agents.Walk(want, func(a Candidate) bool {
		if rank(a) < 0 {
			return false
		}
		if found = may(a); found {
			best = a
		}
		return !found
	})
	return best, found
}

// Known reports whether the task may be assigned to an agent that is known, with or without a connection.
func Known(want event.TaskCreatedData, agents Agents) bool {
	if want.WantedID != "" {
		if _, ok := agents.Agent(want.WantedID); ok {
			return true
		}
	}
	return len(agents.Some(want, 1)) > 0
}

// preferred are the statuses with which an agent may be given tasks, the best first.
var preferred = []string{command.StatusActive, command.StatusBusy, command.StatusInitializing, command.StatusError}

// rank orders agents by how well their status suits a task. It is negative for one that
// takes none.
func rank(a Candidate) int {
	if !a.Online || a.Full {
		return -1
	}
	return slices.Index(preferred, a.Status)
}

// Compare orders agents by how well they suit a task that Matches them: the best first, and those that take no tasks last.
func Compare(a, b Candidate) int {
	place := func(c Candidate) int {
		if n := rank(c); n >= 0 {
			return n
		}
		return len(preferred)
	}
	return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Load, b.Load), a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
}

// Matches reports whether the task wants the agent by its name, or else by its capabilities. A task without either matches
// no agent.
func Matches(want event.TaskCreatedData, a Candidate) bool {
	switch {
	case a.ID == "":
		return false
	case want.WantedName != "":
		return a.Name == want.WantedName
	}
	for _, c := range want.Capabilities {
		if !slices.Contains(a.Capabilities, c) {
			return false
		}
	}
	return len(want.Capabilities) > 0
}

// expected returns the agent that will most likely get the task: the one that Choose returns now, else the one with the
// wanted id, else the only possible one.
func expected(want event.TaskCreatedData, agents Agents) (agentID, name string) {
	if a, ok := Choose(want, agents); ok {
		return a.ID, a.Name
	}
	if want.WantedID != "" {
		if a, ok := agents.Agent(want.WantedID); ok {
			return a.ID, a.Name
		}
	}
	if some := agents.Some(want, 2); len(some) == 1 {
		return some[0].ID, some[0].Name
	}
	return "", ""
}

// List is a few agents in any order.
type List []Candidate

// Agent implements Agents.
func (l List) Agent(agentID string) (Candidate, bool) {
	if i := slices.IndexFunc(l, func(a Candidate) bool { return a.ID == agentID }); i >= 0 && agentID != "" {
		return l[i], true
	}
	return Candidate{}, false
}

// Walk implements Agents.
func (l List) Walk(want event.TaskCreatedData, f func(Candidate) bool) {
	for _, a := range slices.SortedFunc(slices.Values(l), Compare) {
		if a.Online && Matches(want, a) && !f(a) {
			return
		}
	}
}

// Some implements Agents.
func (l List) Some(want event.TaskCreatedData, n int) (out []Candidate) {
	for _, a := range l {
		if len(out) < n && Matches(want, a) {
			out = append(out, a)
		}
	}
	return out
}
