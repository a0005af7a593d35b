package agui

import (
	"encoding/json"
	"slices"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
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
}

// message is one of the history. An open one has its text in the run.
type message struct {
	wire.Message
	open bool
	size int
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
	h.bytes += one.size
	if i := h.index(m.ID); i >= 0 {
		h.bytes -= h.list[i].size
		h.list[i] = one
	} else {
		h.list = append(h.list, one)
	}
	for len(h.list) > maxMessages || h.bytes > maxMessageBytes && len(h.list) > 1 {
		h.bytes -= h.list[0].size
		h.cut, h.list = h.list[0].ID, h.list[1:]
	}
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

// call adds a tool call to the message, which is made if it does not exist.
func (h *history) call(messageID, sub string, c wire.ToolCall) {
	m := wire.Message{ID: messageID, Role: wire.RoleAssistant, SubagentRunID: sub}
	if i := h.index(messageID); i >= 0 {
		m = h.list[i].Message
	}
	m.ToolCalls = append(slices.Clone(m.ToolCalls), c)
	h.add(m, false)
}

// quote returns a text as JSON.
func quote(text string) json.RawMessage {
	raw, _ := plainjson.Marshal(text) //nolint:errchkjson // a string
	return raw
}

// messages returns the history as the variant shows it, with the texts so far of open messages.
func (t *Thread) messages() []wire.Message {
	out := make([]wire.Message, 0, len(t.history.list))
	for _, m := range t.history.list {
		one := m.Message
		if m.open {
			one.Content = quote(string(t.run.text(m.ID).body))
		}
		if !t.variant.subagents {
			one.SubagentRunID = ""
		}
		out = append(out, one)
	}
	return out
}

// snapshot appends all messages.
func (t *Thread) snapshot() {
	if !t.mute {
		t.emit(wire.Snapshot{Base: t.base(wire.MessagesSnapshot), Messages: t.messages()})
	}
}

// remember adds a message to the history and to the past.
func (t *Thread) remember(m wire.Message, open bool) {
	t.history.add(m, open)
	if t.past != nil {
		t.past.messages[m.ID] = true
	}
}

// Messages returns the newest messages before the one with the id, at most limit, and the id of the first of them where
// older ones exist. An empty id means the end. It returns false for an id that the newest messages do not have.
func (t *Thread) Messages(before string, limit int) (page []wire.Message, next string, ok bool) {
	all := t.messages()
	end := len(all)
	if before != "" {
		if end = t.history.index(before); end < 0 {
			return nil, "", false
		}
	}
	from := max(end-limit, 0)
	page = all[from:end]
	if len(page) > 0 && (from > 0 || t.history.cut != "") {
		next = page[0].ID
	}
	return page, next, true
}
