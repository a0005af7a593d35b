package teamwork

import (
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// inquiries are the questions of members to people, and of members of nested teams.
type inquiries struct {
	questions map[string]question // by call
	inputs    map[string]string   // call by question
}

// question is where a question was asked. Snapshots hold it.
type question struct {
	Agent id.Entity `json:"agent"`
	Input string    `json:"input"`
}

// Question returns the question that is named by its id or by its call, answered or
// not: the agent in whose log it is, and its id there.
func (iq *inquiries) Question(name string) (agent id.Entity, inputID string, ok bool) {
	if call, is := iq.inputs[name]; is {
		name = call
	}
	q, ok := iq.questions[name]
	return q.Agent, q.Input, ok
}

// ask keeps the questions about tool calls, answered ones too: the agent's log knows
// whose answer counted.
func (iq *inquiries) ask(inner event.Event, r *roster) {
	if inner.Type != event.InputRequested {
		return
	}
	d, err := eventdata.As[event.InputRequestedData](inner)
	if err != nil || d.Scope != event.ScopeTool && d.Scope != event.ScopeBudget && d.Scope != event.ScopeAgent {
		return
	}
	call := d.CallID
	if d.Scope != event.ScopeTool {
		call = d.InputID
	}
	if p, err := r.find(inner.Via.Route); err == nil {
		iq.questions[call] = question{Agent: p.ID, Input: d.InputID}
		iq.inputs[d.InputID] = call
	}
}
