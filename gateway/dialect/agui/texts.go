package agui

import (
	"slices"
	"strings"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// noText stands for a message that is not open.
var noText = &text{}

// text returns an open message.
func (r *run) text(id string) *text {
	if r != nil {
		for _, x := range r.texts {
			if x.id == id {
				return x
			}
		}
	}
	return noText
}

// subOf returns the subagent that a piece of work belongs to, empty for the run itself.
func (r *run) subOf(p event.Part) string {
	if p.Stage != event.StageSolving {
		return ""
	}
	return p.JobID
}

// openText begins a message.
func (t *Thread) openText(id string, p event.Part) *text {
	x := &text{id: id, sub: t.live(t.run.subOf(p)), reasoning: p.Stage == event.StagePlanning}
	t.run.texts = append(t.run.texts, x)
	role := wire.RoleAssistant
	if x.reasoning {
		role = wire.RoleReasoning
	}
	t.remember(wire.Message{ID: id, Role: role, SubagentRunID: x.sub, Name: t.speaker(x.sub)}, true)
	t.textStarted(x)
	return x
}

// speaker is the name of a subagent where the variant has no other place for it.
func (t *Thread) speaker(sub string) string {
	if t.variant.subagents || sub == "" {
		return ""
	}
	for _, s := range t.run.subs {
		if s.work == sub {
			return s.name
		}
	}
	return ""
}

func (t *Thread) textStarted(x *text) {
	if x.reasoning {
		t.emit(wire.Text{Base: t.base(wire.ReasoningStart), MessageID: x.id, SubagentRunID: t.owner(x.sub)})
		t.emit(wire.Text{Base: t.base(wire.ReasoningMessageStart), MessageID: x.id, Role: wire.RoleReasoning, SubagentRunID: t.owner(x.sub)})
		return
	}
	t.emit(wire.Text{
		Base: t.base(wire.TextMessageStart), MessageID: x.id, Role: wire.RoleAssistant, Name: t.speaker(x.sub), SubagentRunID: t.owner(x.sub),
	})
}

// say continues a message.
func (t *Thread) say(x *text, piece string) {
	if piece == "" {
		return
	}
	x.body = append(x.body, piece...)
	kind := wire.TextMessageContent
	if x.reasoning {
		kind = wire.ReasoningMessageContent
	}
	t.emit(wire.Text{Base: t.base(kind), MessageID: x.id, Delta: piece, SubagentRunID: t.owner(x.sub)})
}

// closeText ends a message, which stays in the history with the text so far.
func (t *Thread) closeText(x *text) {
	t.run.texts = slices.DeleteFunc(t.run.texts, func(o *text) bool { return o == x })
	if i := t.history.index(x.id); i >= 0 {
		m := t.history.list[i].Message
		m.Content = quote(string(x.body))
		t.history.add(m, false)
	}
	if !x.reasoning {
		t.emit(wire.Text{Base: t.base(wire.TextMessageEnd), MessageID: x.id, SubagentRunID: t.owner(x.sub)})
		return
	}
	t.emit(wire.Text{Base: t.base(wire.ReasoningMessageEnd), MessageID: x.id, SubagentRunID: t.owner(x.sub)})
	t.emit(wire.Text{Base: t.base(wire.ReasoningEnd), MessageID: x.id, SubagentRunID: t.owner(x.sub)})
}

// closeTexts ends the open messages of a subagent, of all if sub is empty.
func (t *Thread) closeTexts(sub string) {
	for _, x := range slices.Clone(t.run.texts) {
		if sub == "" || x.sub == sub {
			t.closeText(x)
		}
	}
}

func messageStarted(t *Thread, d event.MessageStartedData) {
	if t.run.text(d.MessageID) != noText {
		return
	}
	t.ensure()
	t.openText(d.MessageID, d.Part)
}

func messageDelta(t *Thread, d event.MessageDeltaData) {
	t.ensure()
	x := t.run.text(d.MessageID)
	if x == noText {
		x = t.openText(d.MessageID, d.Part)
	}
	t.say(x, d.Text)
}

func messageCompleted(t *Thread, d event.MessageCompletedData) {
	t.ensure()
	x := t.run.text(d.MessageID)
	if x == noText {
		x = t.openText(d.MessageID, d.Part)
	}
	if rest, ok := strings.CutPrefix(d.Content, string(x.body)); ok {
		t.say(x, rest)
	}
	x.body = []byte(d.Content)
	if x.sub == "" && d.Content != "" {
		t.run.said[d.MessageID] = true
	}
	t.closeText(x)
	for _, c := range d.ToolCalls {
		t.callShown(c.ID, c.Name, string(c.Arguments), d.MessageID, x.sub)
	}
}

func messageDiscarded(t *Thread, d event.MessageDiscardedData) {
	x := t.run.text(d.MessageID)
	if x == noText {
		return
	}
	t.ensure()
	t.closeText(x)
	t.history.remove(x.id)
	t.snapshot()
}

// callShown shows a tool call, unless it was shown before.
func (t *Thread) callShown(id, name, arguments, messageID, sub string) {
	if _, known := t.run.calls[id]; known {
		return
	}
	t.run.calls[id] = call{sub: sub, run: t.run.stretch}
	if messageID == "" {
		messageID = id
	}
	t.history.call(messageID, sub, wire.ToolCall{ID: id, Type: "function", Function: wire.Function{Name: name, Arguments: arguments}})
	t.emit(wire.Call{Base: t.base(wire.ToolCallStart), ToolCallID: id, ToolCallName: name, ParentMessageID: messageID, SubagentRunID: t.owner(sub)})
	t.emit(wire.Call{Base: t.base(wire.ToolCallArgs), ToolCallID: id, Delta: arguments, SubagentRunID: t.owner(sub)})
	t.emit(wire.Call{Base: t.base(wire.ToolCallEnd), ToolCallID: id, SubagentRunID: t.owner(sub)})
}

func toolCalled(t *Thread, d event.ToolCalledData) {
	if _, known := t.run.calls[d.CallID]; known {
		return
	}
	t.ensure()
	t.callShown(d.CallID, d.Tool, string(d.Arguments), "", t.run.subOf(d.Part))
}

// result shows the result of a tool call. code is that of a failure.
func (t *Thread) result(callID, content, code string) {
	c, known := t.run.calls[callID]
	if !known {
		return
	}
	t.ensure()
	id := callID + "-result"
	m := wire.Message{ID: id, Role: wire.RoleTool, ToolCallID: callID, Content: quote(content), SubagentRunID: c.sub}
	if code != "" {
		m.Error = code
	}
	t.remember(m, false)
	t.emit(wire.CallResult{
		Base: t.baseOf(wire.ToolCallResult, wire.Origin{Failed: code != "", Code: code}), MessageID: id, ToolCallID: callID,
		Content: content, Role: wire.RoleTool, SubagentRunID: t.owner(c.sub),
	})
}

// live returns the work of a subagent if it is open.
func (t *Thread) live(sub string) string {
	for _, s := range t.run.subs {
		if s.work == sub {
			return sub
		}
	}
	return ""
}
