package assignment

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// spawning decides on tasks that the agent gives to other agents.
type spawning struct{ *State }

// spawn records the child that the agent requests. The child's own log decides whether its target
// exists.
func (h spawning) spawn(c command.Command, d command.SpawnChild, env Env) (effect, error) {
	childID := h.childOf(d, h.head.Attempt)
	switch {
	case h.once[c.ID+".child"]:
		return h.goOn(env)
	case h.children[childID] != nil:
		return effect{Decision: decision.Decision{Again: h.childAgain(childID)}}, nil
	}
	why := h.forbids(d, env.Rules)
	if why == nil {
		why = env.Refused
	}
	switch {
	case why != nil && h.apart(d):
		return h.goOn(env) // it becomes a task of its own
	case why != nil:
		return refuse(c, why)
	}
	agentID, name := expected(event.TaskCreatedData{WantedID: d.TargetID, WantedName: d.TargetName}, env.Agents)
	if agentID == "" {
		agentID, name = d.TargetID, d.TargetName
	}
	return fact(c.ID+".child", event.ChildCreatedData{
		TaskHead: h.head, ChildID: childID, ChildRequestID: d.RequestID, ChildAgentID: agentID, ChildAgentName: name,
		TaskType: d.TaskType, Description: d.Description, Connection: connectionOf(c),
	})
}

// childEnded records the end of a child, once, also after the parent's own: the agent
// that asked for it is the one in the head.
func (h spawning) childEnded(_ command.Command, d event.ChildFinishedData, env Env) (effect, error) {
	c := h.children[d.ChildID]
	if c == nil || c.made == nil {
		return h.goOn(env)
	}
	d.TaskHead = c.made.TaskHead
	return fact(d.ChildID+".child-finished", d)
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
	case openOf(s.childIDs, s.childHead, s.current) >= MaxOpen:
		return fault.Newf(fault.QueueFull, "Too many children of this task are open. Wait for one to end, then try again.")
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
	if childID = s.childOf(d, s.head.Attempt); s.once[c.ID+".child"] || s.children[childID] != nil || s.forbids(d, r) != nil {
		return "", "", false
	}
	return s.root(), childID, true
}

// Child returns the command that creates the child of a spawn which was accepted.
// It is false if it was not, or the child has ended.
func (s *State) Child(d command.SpawnChild) (command.NewTask, bool) {
	childID := s.childMade(d, s.head.Attempt)
	c := s.children[childID]
	if c == nil || c.made == nil {
		return command.NewTask{}, false
	}
	caller, err := json.Marshal(struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}{c.made.AgentID, c.made.AgentName})
	if err != nil { // two strings can be encoded
		return command.NewTask{}, false
	}
	return command.NewTask{
		TaskID: childID, RequestID: d.RequestID, ClientID: s.head.ClientID, AgentID: d.TargetID, AgentName: d.TargetName,
		TaskType: d.TaskType, Data: d.Data, DataRef: d.DataRef, TimeoutMS: d.TimeoutMS, ParentID: s.head.TaskID, Depth: s.task.Depth + 1, RootID: s.root(),
		Chain: append(append([]string(nil), s.task.Chain...), c.made.AgentName), Caller: caller, Session: s.task.Session,
	}, true
}

// apart reports whether the requested child belongs to another task: the agent did not name this
// task and does not hold it.
func (s *State) apart(d command.SpawnChild) bool {
	return d.Inferred && s.childMade(d, s.head.Attempt) == "" && s.fence(d.AgentID) != nil
}

// Apart returns the command that creates a task without a parent for a spawn that belongs to
// another task. It is false for a spawn of this task.
func (s *State) Apart(d command.SpawnChild) (command.NewTask, bool) {
	if !s.apart(d) {
		return command.NewTask{}, false
	}
	return d.Apart(), true
}
