package fold

import (
	"encoding/json"
	"slices"
	"strings"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// messageStarted shows nothing of the message: its text begins with the first delta. Reasoning may come before, and a message that
// only calls tools has none.
func messageStarted(t *Thread, _ event.MessageStartedData) { t.ensure() }

func messageDelta(t *Thread, d event.MessageDeltaData) {
	t.ensure()
	t.thought(d.MessageID)
	piece := d.Text
	if d.Stage == event.StagePlanning {
		of := t.run.thoughts[d.MessageID]
		piece = of.plan.Tell(piece)
		t.run.thoughts[d.MessageID] = of
	}
	x := t.run.text(d.MessageID)
	if x == noText && piece != "" {
		x = t.openText(d.MessageID, d.Part)
	}
	t.say(x, piece)
}

func messageCompleted(t *Thread, d event.MessageCompletedData) {
	t.ensure()
	t.thought(d.MessageID)
	delete(t.run.thoughts, d.MessageID)
	if d.Stage == event.StagePlanning {
		d.Content = narrate.Planned(d.Content)
	}
	x := t.run.text(d.MessageID)
	if x == noText && d.Content != "" {
		x = t.openText(d.MessageID, d.Part)
	}
	sub := t.live(t.by(d.Part))
	if x != noText {
		sub = x.sub
		t.complete(x, d)
	}
	for _, c := range d.ToolCalls {
		t.callShown(c.ID, c.Name, string(c.Arguments), d.MessageID, sub)
	}
}

// complete ends an open text.
func (t *Thread) complete(x *text, d event.MessageCompletedData) {
	if rest, ok := strings.CutPrefix(d.Content, string(x.body)); ok {
		t.say(x, rest)
	}
	x.body = []byte(d.Content)
	if x.sub == "" && d.Content != "" {
		t.run.said[d.MessageID] = true
	}
	if !d.Complete() {
		x.stop = d.StopReason
	}
	t.closeText(x)
}

// messageDiscarded takes the text away, and the reasoning before it.
func messageDiscarded(t *Thread, d event.MessageDiscardedData) {
	x, thought := t.run.text(d.MessageID), t.unthink(d.MessageID)
	if x == noText && !thought {
		return
	}
	t.ensure()
	if x != noText {
		t.closeText(x)
		t.history.remove(x.id)
	}
	t.snapshot()
}

// callShown shows a tool call, unless it was shown before.
func (t *Thread) callShown(id, name, arguments, messageID, sub string) {
	if _, known := t.run.calls[id]; known {
		return
	}
	t.run.calls[id] = call{sub: sub, run: t.run.stretch, digest: event.CallDigest(name, []byte(arguments))}
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
	t.callShown(d.CallID, d.Tool, string(d.Arguments), "", t.by(d.Part))
}

func toolCompleted(t *Thread, d event.ToolCompletedData) {
	files := slices.DeleteFunc(slices.Clone(d.Files), func(f event.File) bool { return content.FileURL(f) == "" })
	if len(files) > 0 && t.variant.files { // older clients take no parts of results
		t.resulted(d.CallID, raw(partsOf(d.Result, nil, files)), "")
		return
	}
	t.result(d.CallID, d.Result, "")
}

func toolFailed(t *Thread, d event.ToolFailedData) {
	code, message := narrate.Fault(d.Code, d.Message)
	t.result(d.CallID, message, code)
}

func toolUnknown(t *Thread, d event.ToolUnknownData) { t.result(d.CallID, d.Message, "TOOL_LOST") }

// result shows the text that is the result of a tool call. code is that of a failure.
func (t *Thread) result(callID, content, code string) { t.resulted(callID, quote(content), code) }

// resulted shows the result of a tool call: a text, or parts.
func (t *Thread) resulted(callID string, content json.RawMessage, code string) {
	c, known := t.run.calls[callID]
	if !known {
		return
	}
	t.ensure()
	id := callID + "-result"
	m := wire.Message{ID: id, Role: wire.RoleTool, ToolCallID: callID, Content: content, SubagentRunID: c.sub}
	if code != "" {
		m.Error = code
	}
	t.remember(m, false)
	t.emit(wire.CallResult{
		Base: t.baseOf(wire.ToolCallResult, wire.Origin{Failed: code != "", Code: code}), MessageID: id, ToolCallID: callID,
		Content: content, Role: wire.RoleTool, SubagentRunID: t.owner(c.sub),
	})
}
