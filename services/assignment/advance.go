package assignment

import (
	"fmt"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// Reasons of task.queued and task.released.
const (
	reasonOffline  = "offline"
	reasonBusy     = "busy"
	reasonReleased = "released"
	reasonLost     = "agent_lost"
	reasonForgot   = "forgotten"
	reasonSilent   = "silent"
)

// advance returns the next event that follows from the state without a command, or nil.
func (s *State) advance(env Env) []decision.Fact {
	if s.Created.IsZero() || s.Done() {
		return nil
	}
	due := s.Deadline()
	switch {
	case s.task.Depth > env.Rules.MaxDepth:
		return s.fail(fault.TooDeep, "")
	case !due.IsZero() && !env.Now.Before(due):
		return s.fail(fault.TaskTimeout, "")
	case s.overdue(env):
		return []decision.Fact{{ID: s.question.eventID + ".expired", Data: event.TaskAskExpiredData{TaskHead: s.head, InputID: s.question.id}}}
	case s.holder == "":
		return s.place(env)
	case s.forgotten(env.Agents):
		return []decision.Fact{s.released(reasonForgot)}
	case s.silent(env):
		return []decision.Fact{s.released(reasonSilent)}
	case !env.Now.Before(s.heard.Add(env.Rules.Lease)) && !there(env.Agents, s.holder):
		return []decision.Fact{s.released(reasonLost)}
	}
	return nil
}

func (s *State) fail(code fault.Code, text string) []decision.Fact {
	return []decision.Fact{{ID: "failed", Data: s.ending(StatusFailed, code, text)}}
}

// released takes the task from its agent. An attempt is released once.
func (s *State) released(reason string) decision.Fact {
	return decision.Fact{ID: fmt.Sprintf("released.%d", s.head.Attempt), Data: event.TaskReleasedData{TaskHead: s.head, Reason: reason}}
}

// forgotten reports whether the holder reconnected and listed its tasks without this one. It counts
// only on a connection other than the one that delivered the task: an agent lists its tasks before
// it gets new ones.
func (s *State) forgotten(agents Agents) bool {
	a, ok := agents.Agent(s.holder)
	return ok && a.Online && a.Knows && s.via != "" && a.Connection != s.via && !slices.Contains(a.Holds, s.head.TaskID)
}

// returned says since when the agent that has the task is back on another connection than
// the one by which it was handed the task, if it has neither said which tasks it has nor
// anything about this one.
func (s *State) returned(agents Agents) (since time.Time, ok bool) {
	a, ok := agents.Agent(s.holder)
	return a.Joined, ok && a.Online && !a.Knows && s.via != "" && a.Connection != s.via
}

// silent reports whether the agent has been back for so long that its silence means that
// its process is another one. An agent that works on may be silent too, so the last
// attempt is not taken from it: its time runs out instead.
func (s *State) silent(env Env) bool {
	since, ok := s.returned(env.Agents)
	return ok && s.head.Attempt < env.Rules.Tries && !env.Now.Before(since.Add(env.Rules.Silence))
}

// there reports whether the agent has a connection or may reconnect.
func there(agents Agents, agentID string) bool {
	a, ok := agents.Agent(agentID)
	return ok && (a.Online || a.Away)
}

// place assigns an unassigned task to an agent, queues the task, or fails it.
func (s *State) place(env Env) []decision.Fact {
	if s.head.Attempt >= env.Rules.Tries {
		return s.fail(fault.AgentLost, "")
	}
	if a, ok := s.choose(env); ok {
		head := s.head
		head.AgentID, head.AgentName, head.Attempt = a.ID, a.Name, s.head.Attempt+1
		return []decision.Fact{{ID: fmt.Sprintf("assigned.%d", head.Attempt), Data: event.TaskAssignedData{
			TaskHead: head, TaskType: s.task.TaskType, Data: s.task.Data, DataRef: s.task.DataRef, Caller: s.task.Caller, Deadline: s.Deadline(),
			Registered: a.Registered, Owner: s.task.Principal,
		}}}
	}
	reason, known := s.reason(env)
	switch {
	case !s.queued && s.head.Attempt == 0 && !known:
		return s.fail(fault.AgentNotFound, "")
	case !s.queued:
		return []decision.Fact{{ID: fmt.Sprintf("queued.%d", s.head.Attempt), Data: event.TaskQueuedData{TaskHead: s.head, Reason: reason}}}
	case env.Now.Before(s.patience()):
		return nil
	case s.head.Attempt > 0:
		return s.fail(fault.AgentLost, "")
	case reason == reasonBusy:
		return s.fail(fault.AgentOffline, "The agent took no tasks all the time. Try again later.")
	}
	return s.fail(fault.AgentOffline, "")
}

// choose returns the agent for the task: first the one that came back without naming it, if that is
// still connected. That agent may be working on the task, and its result counts.
func (s *State) choose(env Env) (Candidate, bool) {
	if s.again {
		if a, ok := env.Agents.Agent(s.lost); ok && a.Online {
			return a, true
		}
	}
	return choose(s.task, env.Agents, func(a Candidate) bool { return s.eligible(a, env) })
}

// reason returns why the task has to wait, and whether the registry knows an agent for it.
func (s *State) reason(env Env) (reason string, known bool) {
	reason, known = reasonOffline, Known(s.task, env.Agents)
	busy := func(a Candidate) bool {
		if a.Online {
			reason = reasonBusy
		}
		return false
	}
	env.Agents.Walk(s.task, busy)
	if a, ok := env.Agents.Agent(s.task.WantedID); ok && s.task.WantedID != "" {
		busy(a)
	}
	if s.head.Attempt > 0 {
		reason = reasonReleased
	}
	return reason, known
}

// eligible reports whether the agent may have the task: the one that has just lost it may not, because its entry in the
// directory may be out of date. An agent that connected since counts as a new one.
func (s *State) eligible(a Candidate, env Env) bool {
	return s.lost == "" || a.ID != s.lost || !env.Now.Before(s.lostAt.Add(env.Rules.Pause)) || a.Since.After(s.lostAt)
}

// patience is until when the task waits for an agent.
func (s *State) patience() time.Time { return s.waiting.Add(millis(s.task.QueueMS)) }

// Due returns the earliest time at which advance may return an event: a deadline of the task or of
// a question, the end of the wait for an agent, of a pause or of a lease. It is zero if the state
// waits for commands only. Calling advance earlier has no effect.
func (s *State) Due(env Env) time.Time {
	if s.Created.IsZero() || s.Done() {
		return time.Time{}
	}
	due := s.Deadline()
	at := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	if s.asking() {
		at(s.question.due)
	}
	if s.holder != "" {
		look := s.heard.Add(env.Rules.Lease)
		if !env.Now.Before(look) && there(env.Agents, s.holder) {
			look = env.Now.Add(env.Rules.Lease)
		}
		at(look)
		if since, ok := s.returned(env.Agents); ok && s.head.Attempt < env.Rules.Tries {
			at(since.Add(env.Rules.Silence))
		}
		return due
	}
	at(s.patience())
	if again := s.lostAt.Add(env.Rules.Pause); s.lost != "" && env.Now.Before(again) {
		at(again)
	}
	return due
}
