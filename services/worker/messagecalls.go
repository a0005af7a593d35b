package worker

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// maxMessage bounds the bytes of a message with the arguments of its calls: they are stored as one event, with room for policies.
const maxMessage = 200 << 10

// fitting returns the calls of a message with the text. Those whose arguments do not fit into its event lose them, and
// say why they cannot be made: the model learns it, and can call again with less.
func fitting(calls []event.ToolCall, text string) []event.ToolCall {
	out, left := slices.Clone(calls), maxMessage
	if said, err := json.Marshal(text); err == nil { // a string can be encoded
		left -= len(said)
	}
	for i := range out {
		c := &out[i]
		if n := len(c.Arguments); n <= left {
			left -= n
			continue
		}
		c.Invalid = fmt.Sprintf("The arguments are too large: %d bytes, and %d are left for them in this message. Nothing was called. Call the tool again with less at a time.",
			len(c.Arguments), max(left, 0))
		c.Arguments = json.RawMessage(`{}`)
	}
	return out
}

// checkedCalls gives calls whose id was or may have been used before in the session a new one: some
// servers number the calls of every answer from zero. Jobs of a pipeline run, which
// cannot see what others are about to use, get new ones anyway, and so do members of
// teams: people answer for calls by their ids, in the whole team. Each call gets the policy
// of its tool, as it was offered.
func (j *job) checkedCalls(calls []event.ToolCall) []event.ToolCall {
	out := make([]event.ToolCall, 0, len(calls))
	seen := map[string]bool{}
	for _, c := range calls {
		_, asked := j.state.Approval(c.ID)
		if c.ID == "" || seen[c.ID] || j.state.Forgot() || asked || j.state.Call(c.ID) != nil || j.begun.Part.JobID != "" || j.state.Agent != nil {
			c.ID = "call_" + j.s.cfg.NewID()
		}
		seen[c.ID] = true
		c.Policy = nil
		if o, ok := j.offered[c.Name]; ok && !o.Client {
			c.Policy = &o.Policy
		}
		out = append(out, j.checked(c))
	}
	return out
}

// checked returns the call with the reason why it cannot be made, if its arguments do not fit the tool: people are not asked
// about it.
func (j *job) checked(c event.ToolCall) event.ToolCall {
	o, ok := j.offered[c.Name]
	if !ok || c.Invalid != "" {
		return c
	}
	s, err := schema.Compile(o.InputSchema)
	if err != nil {
		return c // the tool's server checks the arguments
	}
	if _, err := s.Arguments(c.Arguments); err != nil {
		c.Invalid = j.s.asFault(err).Public()
	}
	return c
}
