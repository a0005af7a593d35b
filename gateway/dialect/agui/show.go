package agui

import (
	"fmt"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// show shows the whole content of an activity.
func (t *Thread) show(id, kind, sub string, content any) {
	a := t.run.activity(id)
	if a == nil {
		a = &activity{id: id, kind: kind, sub: sub}
		t.run.acts = append(t.run.acts, a)
	}
	a.content, a.within = content, t.run.stretch
	t.emit(t.whole(a))
}

func (t *Thread) whole(a *activity) wire.Activity {
	return wire.Activity{
		Base: t.base(wire.ActivitySnapshot), MessageID: a.id, ActivityType: a.kind, Content: a.content, SubagentRunID: t.owner(a.sub),
	}
}

// change shows what is new about an activity: as a patch, unless the whole is shorter.
func (t *Thread) change(id string, patch []wire.Operation, content any) {
	a := t.run.activity(id)
	if a == nil {
		return
	}
	if a.content = content; a.within != t.run.stretch { // a client of this stretch may not have it
		t.show(a.id, a.kind, a.sub, content)
		return
	}
	if t.mute {
		return
	}
	delta := wire.Activity{Base: t.base(wire.ActivityDelta), MessageID: a.id, ActivityType: a.kind, Patch: patch, SubagentRunID: t.owner(a.sub)}
	whole := t.whole(a)
	if length(whole) < length(delta) {
		t.emit(whole)
		return
	}
	t.emit(delta)
}

func length(v any) int {
	raw, _ := plainjson.Marshal(v) //nolint:errchkjson // what emit encodes
	return len(raw)
}

// announce begins a subagent in the stretch. Its id is not used twice in one.
func (t *Thread) announce(s *sub) {
	r := t.run
	s.suspended = false
	r.used[s.work]++
	if n := r.used[s.work]; n > 1 {
		s.id = fmt.Sprintf("%s~%d", s.work, n)
	} else {
		s.id = s.work
	}
	if t.variant.subagents {
		t.emit(wire.Subagent{Base: t.base(wire.SubagentStarted), SubagentRunID: s.id, Name: s.name, Description: s.description})
		return
	}
	t.subStatus(s, "running")
}

// subStatus shows a subagent as an activity, for variants that have no other form.
func (t *Thread) subStatus(s *sub, status string) {
	t.show("subagent-"+s.id, wire.ActivitySubagent, "", members("id", s.id, "name", s.name, "description", s.description, "status", status))
}

// suspend ends the stretch of a subagent that goes on after an answer.
func (t *Thread) suspend(s *sub, interrupts []string) {
	s.suspended = true
	if t.variant.subagents {
		t.emit(wire.Subagent{Base: t.base(wire.SubagentFinished), SubagentRunID: s.id, Outcome: &wire.SubagentOutcome{Type: wire.OutcomeSuspended, InterruptIDs: interrupts}})
		return
	}
	t.subStatus(s, wire.OutcomeSuspended)
}

// failedSub returns the end of a subagent that has failed.
func failedSub(message, code string) func(wire.Subagent) wire.Subagent {
	return func(b wire.Subagent) wire.Subagent {
		b.Type, b.Message, b.Code = wire.SubagentError, message, code
		return b
	}
}

// asked is the content of the activity of a question.
func (t *Thread) asked(q Question) any {
	q.SubagentRunID = t.owner(q.SubagentRunID)
	return struct {
		wire.Interrupt
		Status   string `json:"status"` // open, answered, expired
		Decision string `json:"decision,omitempty"`
		By       string `json:"by,omitempty"`
		ClientID string `json:"clientId,omitempty"`
	}{q.Interrupt, q.status(), q.Decision, q.By, q.ClientID}
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
	t.change(q.ID, patch, t.asked(q))
	t.custom(wire.CustomAnswered, members("interruptId", q.ID, "decision", q.Decision, "by", q.By, "clientId", q.ClientID))
}
