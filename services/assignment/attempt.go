package assignment

import (
	"fmt"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// attempt is the newest attempt at the task: the agent that holds it, or has lost it. An open task without a holder waits.
type attempt struct {
	head event.TaskHead // every event about the task repeats it

	holder    string // agent that holds the task; empty = none
	assigned  *event.TaskAssignedData
	heard     time.Time // when the holder was last heard of
	confirmed bool      // the holder has it for sure
	via       string    // the connection by which it was handed the task, or spoke of it last; empty = not known
	waiting   time.Time // since when it waits for an agent
	queued    bool      // and the log has the event for it
	lost      string    // agent that it was taken from last
	lostAt    time.Time
	why       string // it was taken
	again     bool   // from an agent that is back: it gets the task first
}

// Head returns what every event about the task repeats.
func (at *attempt) Head() event.TaskHead { return at.head }

// Holder returns the agent that has the task, empty if none has.
func (at *attempt) Holder() string { return at.holder }

// Released returns why an agent lost the task last, empty if none has.
func (at *attempt) Released() string { return at.why }

// Undelivered returns the assignment to deliver: not confirmed, and its agent has shown no sign of
// life since. It is nil if all is delivered.
func (at *attempt) Undelivered() *event.TaskAssignedData {
	if at.holder == "" || at.confirmed {
		return nil
	}
	return at.assigned
}

// current reports whether who did something under the head still has the task.
func (at *attempt) current(h event.TaskHead) bool {
	return at.holder != "" && h.AgentID == at.holder && h.Attempt == at.head.Attempt
}

// MayReport reports whether a service may send the command in its own name. Results and notifications of an agent that a
// principal has registered come from that principal.
func (at *attempt) MayReport(c command.Command) bool {
	if c.Verb != command.FinishTask && c.Verb != command.NotifyTask {
		return true
	}
	var d struct {
		AgentID string `json:"agent_id"`
	}
	return c.Decode(&d) == nil && (at.assigned == nil || !at.assigned.Registered || at.assigned.AgentID != d.AgentID)
}

func (at *attempt) foldQueued(event.Event, event.TaskQueuedData) { at.queued = true }

func (at *attempt) foldAssigned(e event.Event, d event.TaskAssignedData) {
	at.head.AgentID, at.head.AgentName, at.head.Attempt = d.AgentID, d.AgentName, d.Attempt
	at.holder, at.assigned, at.heard, at.confirmed, at.queued, at.via = d.AgentID, &d, e.Time, false, false, ""
}

// sign notes a sign of life of the holder.
func (at *attempt) sign(e event.Event, h event.TaskHead, connection string) {
	if !at.current(h) {
		return
	}
	at.heard, at.confirmed = e.Time, true
	if connection != "" {
		at.via = connection
	}
}

// release takes the task from the agent that holds it.
func (at *attempt) release(e event.Event, d event.TaskReleasedData) {
	at.lost, at.lostAt, at.waiting, at.again, at.why = at.holder, e.Time, e.Time, d.Reason == reasonSilent, d.Reason
	at.holder, at.assigned, at.confirmed, at.queued = "", nil, false, false
}

// released takes the task from its agent. An attempt is released once.
func (at *attempt) released(reason string) decision.Fact {
	return decision.Fact{ID: fmt.Sprintf("released.%d", at.head.Attempt), Data: event.TaskReleasedData{TaskHead: at.head, Reason: reason}}
}

// forgotten reports whether the holder reconnected and listed its tasks without this one. It counts
// only on a connection other than the one that delivered the task: an agent lists its tasks before
// it gets new ones.
func (at *attempt) forgotten(agents Agents) bool {
	a, ok := agents.Agent(at.holder)
	return ok && a.Online && a.Knows && at.via != "" && a.Connection != at.via && !slices.Contains(a.Holds, at.head.TaskID)
}

// returned says since when the agent that has the task is back on another connection than
// the one by which it was handed the task, if it has neither said which tasks it has nor
// anything about this one.
func (at *attempt) returned(agents Agents) (since time.Time, ok bool) {
	a, ok := agents.Agent(at.holder)
	return a.Joined, ok && a.Online && !a.Knows && at.via != "" && a.Connection != at.via
}

// silent reports whether the agent has been back for so long that its silence means that
// its process is another one. An agent that works on may be silent too, so the last
// attempt is not taken from it: its time runs out instead.
func (at *attempt) silent(env Env) bool {
	since, ok := at.returned(env.Agents)
	return ok && at.head.Attempt < env.Rules.Tries && !env.Now.Before(since.Add(env.Rules.Silence))
}

// eligible reports whether the agent may have the task: the one that has just lost it may not, because its entry in the
// directory may be out of date. An agent that connected since counts as a new one.
func (at *attempt) eligible(a Candidate, env Env) bool {
	return at.lost == "" || a.ID != at.lost || !env.Now.Before(at.lostAt.Add(env.Rules.Pause)) || a.Since.After(at.lostAt)
}
