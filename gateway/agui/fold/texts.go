package fold

import (
	"slices"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// messages returns the history as the variant shows it, with the texts so far of open messages.
func (t *Thread) messages() []wire.Message {
	out := make([]wire.Message, 0, len(t.history.list))
	for _, m := range t.history.list {
		one := m.Message
		switch {
		case m.open:
			one.Content = quote(string(t.run.text(m.ID).body))
		case m.shows != nil:
			one.Content = raw(m.shows)
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
	switch {
	case t.out.mute:
	case t.out.given():
		t.emit(wire.Snapshot{})
	default:
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

// Cut reports whether the thread has messages that are older than those which are kept.
func (t *Thread) Cut() bool { return t.history.cut != "" }

// openText begins a message.
func (t *Thread) openText(id string, p event.Part) *text {
	x := &text{id: id, sub: t.live(t.by(p)), reasoning: p.Stage == event.StagePlanning}
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
		if x.stop != "" && !x.reasoning {
			m.Metadata = &wire.Metadata{Waggle: wire.Stop{StopReason: x.stop}}
		}
		t.history.add(m, false)
	}
	if !x.reasoning {
		t.emit(wire.Text{Base: t.baseOf(wire.TextMessageEnd, wire.Origin{StopReason: x.stop}), MessageID: x.id, SubagentRunID: t.owner(x.sub)})
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

// answerShown shows what became of a question. A client knows the results of its own tools.
func (t *Thread) answerShown(q Question) {
	if q.Scope == event.ScopeClientTool {
		return
	}
	patch := []wire.Operation{{Op: "replace", Path: "/status", Value: q.status()}}
	for _, m := range [][2]string{{"/decision", q.Decision}, {"/by", q.By}, {"/clientId", q.ClientID}} {
		if m[1] != "" {
			patch = append(patch, wire.Operation{Op: "add", Path: m[0], Value: m[1]})
		}
	}
	if len(q.changed) > 0 {
		patch = append(patch, wire.Operation{Op: "add", Path: "/editedArgs", Value: q.changed})
	}
	t.change(q.ID, patch, t.asked(q))
	t.custom(wire.CustomAnswered, members("interruptId", q.ID, "decision", q.Decision, "by", q.By, "clientId", q.ClientID))
	if len(q.changed) > 0 { // the call that is shown has the model's arguments
		t.snapshot()
	}
}
