package fold

import (
	"reflect"
	"slices"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
)

// A snapshot has the newest messages within these bounds.
const (
	maxMessages     = 1000
	maxMessageBytes = 2 << 20
)

// history are the newest messages of a thread, in the order in which they began. The messages are immutable.
type history struct {
	list  []*message
	bytes int
	cut   string // the id of the newest message that the bounds have removed; empty = none

	until  string // the message after which none is kept; empty = all are
	sealed bool   // it has come
}

// message is one of the history. An open one has its text in the run.
type message struct {
	wire.Message
	open  bool
	size  int
	shows any // the content of an activity, which is not modified
}

func (h history) clone() history {
	h.list = slices.Clone(h.list)
	return h
}

// add appends a message, or replaces the one with its id.
func (h *history) add(m wire.Message, open bool) {
	one := &message{Message: m, open: open, size: len(m.Content) + len(m.ID) + len(m.Error)}
	for _, c := range m.ToolCalls {
		one.size += len(c.ID) + len(c.Function.Name) + len(c.Function.Arguments)
	}
	h.put(one)
}

// show is add for an activity with its newest content.
func (h *history) show(a *activity) {
	h.put(&message{
		Message: wire.Message{ID: a.id, Role: wire.RoleActivity, ActivityType: a.kind, SubagentRunID: a.sub}, size: len(a.id) + a.size, shows: a.content,
	})
}

func (h *history) put(one *message) {
	i := h.index(one.ID)
	if i >= 0 {
		h.bytes += one.size - h.list[i].size
		h.list[i] = one
	} else {
		if i = h.place(one); h.sealed && i > h.index(h.until) {
			return
		}
		h.bytes += one.size
		h.list = slices.Insert(h.list, i, one)
	}
	h.sealed = h.sealed || one.ID == h.until && h.until != ""
	for len(h.list) > maxMessages || h.bytes > maxMessageBytes && len(h.list) > 1 {
		h.bytes -= h.list[0].size
		h.cut, h.list = h.list[0].ID, h.list[1:]
	}
}

// place returns where a new message stands: at the end, but for the result of a call, which stands after its call and the results
// there, where viewers have put it who saw it come.
func (h *history) place(one *message) int {
	if one.Role != wire.RoleTool {
		return len(h.list)
	}
	for i, m := range slices.Backward(h.list) {
		if !slices.ContainsFunc(m.ToolCalls, func(c wire.ToolCall) bool { return c.ID == one.ToolCallID }) {
			continue
		}
		for i++; i < len(h.list) && h.list[i].Role == wire.RoleTool; i++ {
		}
		return i
	}
	return len(h.list)
}

// index returns the place of a message: most are looked for soon after they were added.
func (h *history) index(id string) int {
	for i, m := range slices.Backward(h.list) {
		if m.ID == id {
			return i
		}
	}
	return -1
}

func (h *history) remove(id string) {
	if i := h.index(id); i >= 0 {
		h.bytes -= h.list[i].size
		h.list = slices.Delete(h.list, i, i+1)
	}
}

// adopt replaces messages by the equal ones of another history.
func (h *history) adopt(o history) {
	same := make(map[string]*message, len(o.list))
	for _, m := range o.list {
		same[m.ID] = m
	}
	for i, m := range h.list {
		if other := same[m.ID]; other != nil && reflect.DeepEqual(m, other) {
			h.list[i] = other
		}
	}
}

// call adds a tool call to the message, which is made if it does not exist.
func (h *history) call(messageID, sub string, c wire.ToolCall) {
	m := wire.Message{ID: messageID, Role: wire.RoleAssistant, SubagentRunID: sub}
	if i := h.index(messageID); i >= 0 {
		m = h.list[i].Message
	}
	m.ToolCalls = append(slices.Clone(m.ToolCalls), c)
	h.add(m, false)
}

// change replaces the arguments of a tool call.
func (h *history) change(callID, arguments string) {
	for _, m := range slices.Backward(h.list) {
		i := slices.IndexFunc(m.ToolCalls, func(c wire.ToolCall) bool { return c.ID == callID })
		if i < 0 {
			continue
		}
		one := m.Message
		one.ToolCalls = slices.Clone(one.ToolCalls)
		one.ToolCalls[i].Function.Arguments = arguments
		h.add(one, m.open)
		return
	}
}

// spoken is a text of a person or of the model.
type spoken struct{ id, role, text string }

// spoken returns the text of the message; false if it is open, or has none.
func (m *message) spoken() (spoken, bool) {
	if m.open || m.Role != wire.RoleUser && m.Role != wire.RoleAssistant {
		return spoken{}, false
	}
	c, err := input.ContentOf(&m.Message, "messages")
	return spoken{m.ID, m.Role, c.Text}, err == nil && c.Text != ""
}

// said are the texts of the model from a place of the history on.
func (h *history) said(from int) map[string]bool {
	out := map[string]bool{}
	for _, m := range h.list[from:] {
		if one, ok := m.spoken(); ok && one.role == wire.RoleAssistant {
			out[one.text] = true
		}
	}
	return out
}
