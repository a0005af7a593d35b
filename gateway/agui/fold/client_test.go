package fold_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// client keeps the messages of a thread as the clients of AG-UI do.
type client struct{ messages []wire.Message }

func (c *client) at(id string) *wire.Message {
	for i := range c.messages {
		if c.messages[i].ID == id {
			return &c.messages[i]
		}
	}
	return nil
}

func (c *client) add(m wire.Message) *wire.Message {
	if have := c.at(m.ID); have != nil {
		return have
	}
	c.messages = append(c.messages, m)
	return &c.messages[len(c.messages)-1]
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

func (c *client) take(f fold.Frame) {
	var m struct {
		frame
		Input    *wire.Input
		Metadata struct{ Waggle wire.Origin }
	}
	_ = json.Unmarshal(f.Data, &m)
	switch m.Type {
	case wire.RunStarted:
		if m.Input != nil {
			for _, one := range m.Input.Messages {
				c.add(one)
			}
		}
	case wire.MessagesSnapshot:
		c.messages = slices.Clone(m.Messages)
	case wire.TextMessageStart, wire.ReasoningMessageStart:
		c.add(wire.Message{ID: m.MessageID, Role: m.Role, Name: m.Name, SubagentRunID: m.SubagentRunID, Content: json.RawMessage(`""`)})
	case wire.TextMessageContent, wire.ReasoningMessageContent:
		one := c.at(m.MessageID)
		one.Content, _ = json.Marshal(text(one.Content) + m.Delta)
	case wire.TextMessageEnd:
		if why := m.Metadata.Waggle.StopReason; why != "" {
			c.at(m.MessageID).Metadata = &wire.Metadata{Waggle: wire.Stop{StopReason: why}}
		}
	case wire.ToolCallStart:
		one := c.add(wire.Message{ID: m.ParentMessageID, Role: wire.RoleAssistant, SubagentRunID: m.SubagentRunID})
		one.ToolCalls = append(slices.Clone(one.ToolCalls), wire.ToolCall{ID: m.ToolCallID, Type: "function", Function: wire.Function{Name: m.ToolCallName}})
	case wire.ToolCallArgs:
		c.argue(m.ToolCallID, m.Delta)
	case wire.ToolCallResult:
		c.result(wire.Message{ID: m.MessageID, Role: wire.RoleTool, ToolCallID: m.ToolCallID, Content: m.Content, SubagentRunID: m.SubagentRunID})
	case wire.ActivitySnapshot:
		one := c.add(wire.Message{ID: m.MessageID, Role: wire.RoleActivity, ActivityType: m.ActivityType})
		one.Content = m.Content
	case wire.ActivityDelta:
		one := c.at(m.MessageID)
		one.Content = patched(one.Content, m.Patch)
	}
}

// argue continues the arguments of a call.
func (c *client) argue(callID, piece string) {
	for i := range c.messages {
		for j := range c.messages[i].ToolCalls {
			if call := &c.messages[i].ToolCalls[j]; call.ID == callID {
				call.Function.Arguments += piece
			}
		}
	}
}

// result adds the result of a call after its call and the results that are there.
func (c *client) result(m wire.Message) {
	i := slices.IndexFunc(c.messages, func(o wire.Message) bool {
		return slices.ContainsFunc(o.ToolCalls, func(call wire.ToolCall) bool { return call.ID == m.ToolCallID })
	})
	if c.at(m.ID) != nil {
		return
	}
	for i++; i > 0 && i < len(c.messages) && c.messages[i].Role == wire.RoleTool; i++ {
	}
	if i <= 0 {
		i = len(c.messages)
	}
	c.messages = slices.Insert(c.messages, i, m)
}

// patched returns the content with a patch of members and elements that exist, or are new members.
func patched(content json.RawMessage, patch []wire.Operation) json.RawMessage {
	var doc any
	_ = json.Unmarshal(content, &doc)
	for _, op := range patch {
		at, path := doc, strings.Split(op.Path, "/")[1:]
		for _, name := range path[:len(path)-1] {
			if list, is := at.([]any); is {
				i, _ := strconv.Atoi(name)
				at = list[i]
				continue
			}
			at = at.(map[string]any)[name]
		}
		at.(map[string]any)[path[len(path)-1]] = op.Value
	}
	out, _ := json.Marshal(doc)
	return out
}

// seen is what people see of the messages, but for the results of the client's own tools: their client has them, and others get
// them with the next snapshot.
func (c *client) seen(own map[string]bool) (out []string) {
	for _, m := range c.messages {
		if own[m.ToolCallID] {
			continue
		}
		m.Error, m.SubagentRunID = "", "" // clients keep no error of a result; a call's owner may have ended
		if m.Role == wire.RoleActivity {
			m.Content = patched(m.Content, nil)
		} else {
			m.Content, _ = json.Marshal(text(m.Content))
		}
		raw, _ := json.Marshal(m)
		out = append(out, string(raw))
	}
	return out
}
