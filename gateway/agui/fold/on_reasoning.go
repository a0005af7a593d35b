package fold

import (
	"fmt"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// partID is the id of a part of the reasoning of a message: 1, 2, ...
func partID(messageID string, part int) string {
	if part == 1 {
		return messageID + "-reasoning"
	}
	return fmt.Sprintf("%s-reasoning-%d", messageID, part)
}

func reasoningDelta(t *Thread, d event.ReasoningDeltaData) { t.think(d.MessageID, d.Text, d.Part) }

// reasoningCompleted shows what no delta has shown, and ends the last part.
func reasoningCompleted(t *Thread, d event.ReasoningCompletedData) {
	if shown := t.run.thoughts[d.MessageID].shown; shown < len(d.Content) {
		t.think(d.MessageID, d.Content[shown:], d.Part)
	}
	t.thought(d.MessageID)
}

// think continues the reasoning of a message.
func (t *Thread) think(messageID, piece string, p event.Part) {
	if piece == "" {
		return
	}
	t.ensure()
	of := t.run.thoughts[messageID]
	x := noText
	if of.parts > 0 {
		x = t.run.text(partID(messageID, of.parts))
	}
	if x == noText {
		of.parts++
		x = &text{id: partID(messageID, of.parts), sub: t.live(t.by(p)), reasoning: true}
		t.run.texts = append(t.run.texts, x)
		t.remember(wire.Message{ID: x.id, Role: wire.RoleReasoning, SubagentRunID: x.sub, Name: t.speaker(x.sub)}, true)
		t.textStarted(x)
	}
	of.shown += len(piece)
	t.run.thoughts[messageID] = of
	t.say(x, piece)
}

// thought ends the part of a message's reasoning that is open.
func (t *Thread) thought(messageID string) {
	of := t.run.thoughts[messageID]
	if of.parts == 0 {
		return
	}
	if x := t.run.text(partID(messageID, of.parts)); x != noText {
		t.ensure()
		t.closeText(x)
	}
}

// unthink takes the reasoning of a message away, and reports whether any was shown.
func (t *Thread) unthink(messageID string) bool {
	t.thought(messageID)
	of := t.run.thoughts[messageID]
	for part := range of.parts {
		t.history.remove(partID(messageID, part+1))
	}
	delete(t.run.thoughts, messageID)
	return of.parts > 0
}
