package assignment

import (
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
		return placing{s}.place(env)
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
	at(placing{s}.maxWait())
	if again := s.lostAt.Add(env.Rules.Pause); s.lost != "" && env.Now.Before(again) {
		at(again)
	}
	return due
}

// there reports whether the agent has a connection or may reconnect.
func there(agents Agents, agentID string) bool {
	a, ok := agents.Agent(agentID)
	return ok && (a.Online || a.Away)
}
