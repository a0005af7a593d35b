package fold

import (
	"fmt"
	"strings"

	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// thinks reports whether what a message of the model says is not the answer: a plan, or the work at a step.
func thinks(p event.Part) bool {
	return p.Stage == event.StagePlanning || p.Stage == event.StageSolving
}

func messageDelta(t *Chat, d event.MessageDeltaData) {
	t.ensure()
	piece := d.Text
	if d.Stage == event.StagePlanning {
		of := t.run.thoughts[d.MessageID]
		piece = of.plan.Tell(piece)
		t.run.thoughts[d.MessageID] = of
	}
	if piece == "" {
		return
	}
	t.thought(d.MessageID)
	t.say(d.MessageID, piece, d.Part)
}

func messageCompleted(t *Chat, d event.MessageCompletedData) {
	t.ensure()
	t.thought(d.MessageID)
	delete(t.run.thoughts, d.MessageID)
	if d.Stage == event.StagePlanning {
		d.Content = narrate.Planned(d.Content)
	}
	shown := ""
	if i := t.run.message.opened(d.MessageID); i >= 0 {
		shown = string(t.run.message.Parts[i].body)
	}
	if rest, ok := strings.CutPrefix(d.Content, shown); ok {
		t.say(d.MessageID, rest, d.Part)
	}
	if d.Content != "" && !thinks(d.Part) {
		t.run.said[d.MessageID] = true
	}
	t.closeAll(d.MessageID, nil)
	for _, c := range d.ToolCalls {
		t.stepOf(d.MessageID, d.Part)
		t.called(c.ID, c.Name, c.Arguments)
	}
}

// messageDiscarded takes back what a message has said, and its reasoning.
func messageDiscarded(t *Chat, d event.MessageDiscardedData) {
	r := t.run
	shown := r.message.opened(d.MessageID) >= 0 || r.thoughts[d.MessageID].parts > 0
	if !shown {
		return
	}
	t.ensure()
	gone := &Provider{Origin{StepID: d.StepID, Discarded: true}}
	of := r.thoughts[d.MessageID]
	delete(r.thoughts, d.MessageID)
	t.closeAll(d.MessageID, gone)
	t.closeAll(reasoningID(d.MessageID, of.parts), gone)
	if t.options.Seven && r.speaks == d.MessageID && r.step {
		t.emit(Chunk{Type: ResetStep})
	}
}

// say continues a text.
func (t *Chat) say(id, piece string, p event.Part) {
	if piece == "" {
		return
	}
	t.stepOf(id, p)
	start, delta := TextStart, TextDelta
	if thinks(p) {
		start, delta = ReasoningStart, ReasoningDelta
	}
	t.tell(id, piece, start, delta, p)
}

// tell shows a piece of a text or of reasoning.
func (t *Chat) tell(id, piece, start, delta string, p event.Part) {
	if t.run.message.opened(id) < 0 {
		c := Chunk{Type: start, ID: id}
		if p.StepID != "" {
			c.Provider = &Provider{Origin{StepID: p.StepID}}
		}
		t.emit(c)
	}
	t.emit(Chunk{Type: delta, ID: id, Delta: piece})
}

// closeAll ends the text with the id, if it is open.
func (t *Chat) closeAll(id string, d *Provider) {
	if i := t.run.message.opened(id); i >= 0 {
		t.closeText(&t.run.message.Parts[i], d)
	}
}

// closeText ends an open text.
func (t *Chat) closeText(p *Part, d *Provider) {
	kind := TextEnd
	if p.Type == partReasoning {
		kind = ReasoningEnd
	}
	t.emit(Chunk{Type: kind, ID: p.chunk, Provider: d})
}

// reasoningID is the id of a part of the reasoning of a message: 1, 2, ...
func reasoningID(messageID string, part int) string {
	if part == 1 {
		return messageID + "-reasoning"
	}
	return fmt.Sprintf("%s-reasoning-%d", messageID, part)
}

func reasoningDelta(t *Chat, d event.ReasoningDeltaData) { t.think(d.MessageID, d.Text, d.Part) }

// reasoningCompleted shows what no delta has shown, and ends the last part.
func reasoningCompleted(t *Chat, d event.ReasoningCompletedData) {
	if shown := t.run.thoughts[d.MessageID].shown; shown < len(d.Content) {
		t.think(d.MessageID, d.Content[shown:], d.Part)
	}
	t.thought(d.MessageID)
}

// think continues the reasoning of a message.
func (t *Chat) think(messageID, piece string, p event.Part) {
	if piece == "" {
		return
	}
	t.stepOf(messageID, p)
	of := t.run.thoughts[messageID]
	if of.parts == 0 || t.run.message.opened(reasoningID(messageID, of.parts)) < 0 {
		of.parts++
	}
	of.shown += len(piece)
	t.run.thoughts[messageID] = of
	t.tell(reasoningID(messageID, of.parts), piece, ReasoningStart, ReasoningDelta, p)
}

// thought ends the part of a message's reasoning that is open.
func (t *Chat) thought(messageID string) {
	if of := t.run.thoughts[messageID]; of.parts > 0 {
		t.closeAll(reasoningID(messageID, of.parts), nil)
	}
}

// called shows a tool call, unless it was shown before.
func (t *Chat) called(id, name string, arguments []byte) {
	if _, known := t.run.calls[id]; known {
		return
	}
	t.ensure()
	t.run.calls[id] = call{name: name, digest: event.CallDigest(name, arguments)}
	t.input(id, arguments)
}

// input shows the arguments of a call.
func (t *Chat) input(id string, arguments []byte) {
	name := t.run.calls[id].name
	t.emit(Chunk{Type: ToolInputAvailable, ToolCallID: id, ToolName: name, Dynamic: !t.run.tools[name], Input: object(arguments)})
}

func toolCalled(t *Chat, d event.ToolCalledData) { t.called(d.CallID, d.Tool, d.Arguments) }

func toolCompleted(t *Chat, d event.ToolCompletedData) {
	if !t.result(d.CallID, quote(d.Result)) {
		return
	}
	for _, f := range d.Files {
		if u := content.FileURL(f); u != "" {
			t.emit(Chunk{Type: File, URL: u, MediaType: f.MediaType})
		}
	}
}

func toolFailed(t *Chat, d event.ToolFailedData) {
	_, message := narrate.Fault(d.Code, d.Message)
	t.failed(d.CallID, message)
}

func toolUnknown(t *Chat, d event.ToolUnknownData) { t.failed(d.CallID, d.Message) }

// over notes that a call has a result, and reports whether it was shown and had none.
func (t *Chat) over(callID string) bool {
	c, known := t.run.calls[callID]
	if !known || c.over {
		return false
	}
	t.ensure()
	c.over = true
	t.run.calls[callID] = c
	return true
}

// result shows the result of a call.
func (t *Chat) result(callID string, output []byte) bool {
	if !t.over(callID) {
		return false
	}
	t.emit(Chunk{Type: ToolOutputAvailable, ToolCallID: callID, Output: output})
	return true
}

// failed shows that a call has no result.
func (t *Chat) failed(callID, message string) {
	if t.over(callID) {
		t.emit(Chunk{Type: ToolOutputError, ToolCallID: callID, ErrorText: first(message, "The call has failed.")})
	}
}

// denied shows that people have refused a call.
func (t *Chat) denied(callID string) {
	if t.over(callID) {
		t.emit(Chunk{Type: ToolOutputDenied, ToolCallID: callID})
	}
}
