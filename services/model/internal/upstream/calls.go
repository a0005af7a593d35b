package upstream

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
)

// invalidKey is the member under which invalid arguments go back to the provider: several servers parse the arguments of
// earlier calls and refuse anything but a JSON object.
const invalidKey = "invalid_arguments"

// Calls collects the tool calls of one answer and keeps their ids unique in the conversation, which some servers do not.
type Calls struct {
	newID func() string
	taken map[string]bool
	all   []event.ToolCall
}

// NewCalls returns an empty collection for an answer to req.
func NewCalls(req model.Request) *Calls {
	c := &Calls{newID: req.NewID, taken: map[string]bool{}}
	for _, m := range req.Messages {
		for _, call := range m.ToolCalls {
			c.taken[call.ID] = true
		}
	}
	return c
}

// Add appends a call as the provider sent it. It replaces a missing or duplicate id. A call that was cut, or whose arguments
// are not JSON, says so.
func (c *Calls) Add(id, name, arguments string, cut bool) {
	for id == "" || c.taken[id] {
		id = c.newID()
	}
	c.taken[id] = true
	call := event.ToolCall{ID: id, Name: name, Arguments: parseArguments(arguments)}
	switch {
	case cut:
		call.Invalid = callCut
	case call.Arguments[0] == '"':
		call.Invalid = notJSON
	}
	c.all = append(c.all, call)
}

// The texts for a model about a call that it cannot have meant as it is.
const (
	callCut = "This call was not made: your answer reached its limit of tokens within the call, so that its arguments are cut. Send less at a time, for example in several calls."
	notJSON = "This call was not made: its arguments are not valid JSON. If the limit of tokens has cut them, send less at a time."
)

// Whole reports whether the arguments of a call are a whole JSON object.
func Whole(arguments []byte) bool {
	a := bytes.TrimSpace(arguments)
	return len(a) > 0 && a[0] == '{' && json.Valid(a)
}

// All returns the calls in the order in which they were added.
func (c *Calls) All() []event.ToolCall { return c.all }

// parseArguments returns arguments as valid JSON: empty text becomes an empty object, and invalid JSON a string of itself
// (see model.Reply).
func parseArguments(s string) json.RawMessage {
	s = strings.TrimSpace(s)
	if s == "" || s == "null" {
		return json.RawMessage("{}")
	}
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, err := json.Marshal(strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil { // unreachable: a string always has a JSON form
		return json.RawMessage(`""`)
	}
	return b
}

// History returns the arguments of an earlier call as the object that providers require.
func History(arguments json.RawMessage) json.RawMessage {
	if a := bytes.TrimSpace(arguments); len(a) > 0 && a[0] == '{' && json.Valid(a) {
		return a
	} else if len(a) == 0 {
		return json.RawMessage("{}")
	}
	text := string(arguments)
	var s string
	if json.Unmarshal(arguments, &s) == nil {
		text = s
	}
	b, err := json.Marshal(map[string]string{invalidKey: text})
	if err != nil { // unreachable: strings always have a JSON form
		return json.RawMessage("{}")
	}
	return b
}
