package assignment

import "github.com/waggle-dev/waggle/proto-schemas/command"

// MayReport reports whether a service may send the command in its own name. Results and notifications of an agent that a
// principal has registered come from that principal.
func (s *State) MayReport(c command.Command) bool {
	if c.Verb != command.FinishTask && c.Verb != command.NotifyTask {
		return true
	}
	var d struct {
		AgentID string `json:"agent_id"`
	}
	return c.Decode(&d) == nil && (s.assigned == nil || !s.assigned.Registered || s.assigned.AgentID != d.AgentID)
}
