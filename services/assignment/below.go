package assignment

import (
	"cmp"
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// Outcomes of calls.
const (
	callSuccess = "success"
	callError   = "error"
	callUnknown = "unknown"
)

// spawn records the child that the agent requests. The child's own log decides whether its target
// exists.
func (s *State) spawn(c command.Command, d command.SpawnChild, env Env) (effect, error) {
	childID := s.childOf(d)
	switch {
	case s.once[c.ID+".child"]:
		return s.goOn(env)
	case s.children[childID] != nil:
		return effect{Decision: decision.Decision{Again: s.childAgain(childID)}}, nil
	}
	why := s.forbids(d, env.Rules)
	if why == nil {
		why = env.Refused
	}
	switch {
	case why != nil && s.apart(d):
		return s.goOn(env) // it becomes a task of its own
	case why != nil:
		return s.refuse(c, why)
	}
	agentID, name := expected(event.TaskCreatedData{WantedID: d.TargetID, WantedName: d.TargetName}, env.Agents)
	if agentID == "" {
		agentID, name = d.TargetID, d.TargetName
	}
	return fact(c.ID+".child", event.ChildCreatedData{
		TaskHead: s.head, ChildID: childID, ChildRequestID: d.RequestID, ChildAgentID: agentID, ChildAgentName: name,
		TaskType: d.TaskType, Description: d.Description, Connection: connectionOf(c),
	})
}

// forbids returns why the task may not have the child, nil = it may.
func (s *State) forbids(d command.SpawnChild, r Rules) *fault.Fault {
	why := s.fence(d.AgentID)
	switch {
	case why != nil:
		return why
	case d.ChildID == "" || d.ChildID == s.head.TaskID:
		return fault.New(fault.InvalidField).At("child_id")
	case s.task.Depth >= r.MaxDepth:
		return fault.New(fault.TooDeep)
	case s.open(s.childIDs, s.childHead) >= MaxOpen:
		return fault.Newf(fault.QueueFull, "Too many children of this task are open. Wait for one to end, then send it again.")
	}
	return nil
}

// Spawning returns the child that the command makes unless Env.Refused is set, and the task in whose quota of children
// it counts. It is false if the command makes none: it comes again, or is refused anyway.
func (s *State) Spawning(c command.Command, r Rules) (root, childID string, ok bool) {
	var d command.SpawnChild
	if c.Verb != command.SpawnTask || c.Decode(&d) != nil || s.Created.IsZero() {
		return "", "", false
	}
	if childID = s.childOf(d); s.once[c.ID+".child"] || s.children[childID] != nil || s.forbids(d, r) != nil {
		return "", "", false
	}
	return s.root(), childID, true
}

// root returns the outermost task above this one.
func (s *State) root() string { return cmp.Or(s.task.RootID, s.head.TaskID) }

// apart reports whether the requested child belongs to another task: the agent did not name this
// task and does not hold it.
func (s *State) apart(d command.SpawnChild) bool {
	return d.Inferred && s.childMade(d) == "" && s.fence(d.AgentID) != nil
}

// Apart returns the command that creates a task without a parent for a spawn that belongs to
// another task. It is false for a spawn of this task.
func (s *State) Apart(d command.SpawnChild) (command.NewTask, bool) {
	if !s.apart(d) {
		return command.NewTask{}, false
	}
	return d.Apart(), true
}

func (s *State) childHead(childID string) *event.TaskHead {
	if made := s.children[childID].made; made != nil {
		return &made.TaskHead
	}
	return nil
}

// childEnded records the end of a child, once, also after the parent's own: the agent
// that asked for it is the one in the head.
func (s *State) childEnded(_ command.Command, d event.ChildFinishedData, env Env) (effect, error) {
	c := s.children[d.ChildID]
	if c == nil || c.made == nil {
		return s.goOn(env)
	}
	d.TaskHead = c.made.TaskHead
	return fact(d.ChildID+".child-finished", d)
}

// call records the intent of a tool call. Workers carry it out.
func (s *State) call(c command.Command, d command.ToolRequest, env Env) (effect, error) {
	callID := derived("call_", c)
	if s.calls[callID] != nil {
		return s.goOn(env)
	}
	why := s.fence(d.AgentID)
	if why == nil && s.open(s.callIDs, s.callHead) >= MaxOpen {
		why = fault.Newf(fault.QueueFull, "Too many calls of this task are open. Wait for one to end, then call again.")
	}
	if why != nil {
		return s.refuse(c, why)
	}
	if len(d.Arguments) == 0 {
		d.Arguments = json.RawMessage("{}")
	}
	return fact(callID+".call-started", event.CallStartedData{
		TaskHead: s.head, CallID: callID, CallRequest: d.RequestID, Kind: d.Kind, Server: d.Server, ServerName: env.Tool.ServerName,
		Tool: d.Tool, Arguments: d.Arguments, ArgumentsRef: d.ArgumentsRef, Idempotent: env.Tool.Idempotent, TimeoutMS: millis(d.TimeoutMS).Milliseconds(),
		Connection: connectionOf(c),
	})
}

func (s *State) callHead(callID string) *event.TaskHead {
	if intent := s.calls[callID].intent; intent != nil {
		return &intent.TaskHead
	}
	return nil
}

// callNotified records a provider's notice about an open call of the agent that has the task.
func (s *State) callNotified(c command.Command, d event.CallNotifiedData, env Env) (effect, error) {
	eventID := c.ID + ".call-notified"
	l := s.calls[d.CallID]
	switch {
	case s.once[eventID]:
		return s.goOn(env)
	case s.Done():
		return s.refuse(c, fault.New(fault.TaskFinished))
	case l == nil || l.intent == nil || !s.current(l.intent.TaskHead):
		return s.refuse(c, fault.Newf(fault.NotFound, "No such call is open."))
	case l.told >= MaxNotes:
		return s.refuse(c, fault.New(fault.RateLimited))
	}
	d.TaskHead = l.intent.TaskHead
	return fact(eventID, d)
}

// callEnded records the outcome of a call once, also after the end of the task, because the call's
// effect remains. The fields that describe the call come from its intent.
func (s *State) callEnded(_ command.Command, d event.CallFinishedData, env Env) (effect, error) {
	l := s.calls[d.CallID]
	if l == nil || l.intent == nil {
		return s.goOn(env)
	}
	if d.Status != callSuccess && d.Status != callError && d.Status != callUnknown {
		return effect{}, fault.Newf(fault.InvalidField, "A call cannot end as %q.", d.Status).At("status")
	}
	in := l.intent
	d.TaskHead, d.CallRequest, d.Kind, d.Server, d.Tool = in.TaskHead, in.CallRequest, in.Kind, in.Server, in.Tool
	if d.ServerName == "" {
		d.ServerName = in.ServerName
	}
	return fact(d.CallID+".call-finished", d)
}
