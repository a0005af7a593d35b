package assignment

import (
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// placing finds an agent for a task.
type placing struct{ *State }

// place assigns an unassigned task to an agent, queues the task, or fails it.
func (h placing) place(env Env) []decision.Fact {
	if h.head.Attempt >= env.Rules.Tries {
		return h.fail(fault.AgentLost, "")
	}
	if a, ok := h.choose(env); ok {
		head := h.head
		head.AgentID, head.AgentName, head.Attempt = a.ID, a.Name, h.head.Attempt+1
		return []decision.Fact{{ID: fmt.Sprintf("assigned.%d", head.Attempt), Data: event.TaskAssignedData{
			TaskHead: head, TaskType: h.task.TaskType, Data: h.task.Data, DataRef: h.task.DataRef, Caller: h.task.Caller, Deadline: h.Deadline(),
			Registered: a.Registered, Owner: h.task.Principal,
		}}}
	}
	reason, known := h.reason(env)
	switch {
	case !h.queued && h.head.Attempt == 0 && !known:
		return h.fail(fault.AgentNotFound, "")
	case !h.queued:
		return []decision.Fact{{ID: fmt.Sprintf("queued.%d", h.head.Attempt), Data: event.TaskQueuedData{TaskHead: h.head, Reason: reason}}}
	case env.Now.Before(h.maxWait()):
		return nil
	case h.head.Attempt > 0:
		return h.fail(fault.AgentLost, "")
	case reason == reasonBusy:
		return h.fail(fault.AgentOffline, "The agent did not accept tasks in time. Try again later.")
	}
	return h.fail(fault.AgentOffline, "")
}

// choose returns the agent for the task: first the one that came back without naming it, if that is
// still connected. That agent may be working on the task, and its result counts.
func (h placing) choose(env Env) (Candidate, bool) {
	if h.again {
		if a, ok := env.Agents.Agent(h.lost); ok && a.Online {
			return a, true
		}
	}
	return choose(h.task, env.Agents, func(a Candidate) bool { return h.eligible(a, env) })
}

// reason returns why the task has to wait, and whether the registry knows an agent for it.
func (h placing) reason(env Env) (reason string, known bool) {
	reason, known = reasonOffline, Known(h.task, env.Agents)
	busy := func(a Candidate) bool {
		if a.Online {
			reason = reasonBusy
		}
		return false
	}
	env.Agents.Walk(h.task, busy)
	if a, ok := env.Agents.Agent(h.task.WantedID); ok && h.task.WantedID != "" {
		busy(a)
	}
	if h.head.Attempt > 0 {
		reason = reasonReleased
	}
	return reason, known
}

// maxWait is until when the task waits for an agent.
func (h placing) maxWait() time.Time { return h.waiting.Add(millis(h.task.QueueMS)) }
