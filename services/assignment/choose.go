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

// Choose returns the agent for the task: the one with the wanted id if it can take the task, else
// one with the wanted name, else, without a name, one with all wanted capabilities. Of several it
// takes the one with the best status, then the least loaded, then the longest connected. ok is
// false if none can take the task.
func Choose(want event.TaskCreatedData, agents []Candidate) (Candidate, bool) {
	var best Candidate
	found := false
	for _, a := range agents {
		if rank(a) < 0 || a.ID == "" || !wanted(want, a) {
			continue
		}
		if !found || better(want, a, best) {
			best, found = a, true
		}
	}
	return best, found
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

func better(want event.TaskCreatedData, a, than Candidate) bool {
	if byID := want.WantedID != ""; byID && (a.ID == want.WantedID) != (than.ID == want.WantedID) {
		return a.ID == want.WantedID
	}
	return cmp.Or(cmp.Compare(rank(a), rank(than)), cmp.Compare(a.Load, than.Load), a.Since.Compare(than.Since), cmp.Compare(a.ID, than.ID)) < 0
}

// expected returns the agent that will most likely get the task: the one that Choose returns now,
// else the only possible one.
func expected(want event.TaskCreatedData, agents []Candidate) (agentID, name string) {
	if a, ok := Choose(want, agents); ok {
		return a.ID, a.Name
	}
	n := 0
	for _, a := range agents {
		switch {
		case a.ID != "" && a.ID == want.WantedID:
			return a.ID, a.Name
		case wanted(want, a):
			agentID, name = a.ID, a.Name
			n++
		}
	}
	if n != 1 {
		return "", ""
	}
	return agentID, name
}

// wanted reports whether the task may be assigned to the agent. A task without id, name and
// capabilities matches no agent.
func wanted(want event.TaskCreatedData, a Candidate) bool {
	switch {
	case want.WantedID != "" && a.ID == want.WantedID:
		return true
	case want.WantedName != "":
		return a.Name == want.WantedName
	case len(want.Capabilities) == 0:
		return false
	}
	for _, c := range want.Capabilities {
		if !slices.Contains(a.Capabilities, c) {
			return false
		}
	}
	return true
}
