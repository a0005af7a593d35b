package fold

import (
	"encoding/json"
	"fmt"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// base returns the members that all events of the run have.
func (t *Thread) base(kind string) wire.Base { return t.baseOf(kind, wire.Origin{}) }

// baseOf is base with more about the origin.
func (t *Thread) baseOf(kind string, o wire.Origin) wire.Base {
	if t.out.unstamped(kind) {
		return wire.Base{}
	}
	return t.stamped(kind, o)
}

// stamped is baseOf for frames that are kept.
func (t *Thread) stamped(kind string, o wire.Origin) wire.Base {
	b := wire.Base{Type: kind}
	o.Seq, o.Attempt = t.seq, t.attempt
	if !t.at.Time.IsZero() { // the thread has events
		o.Time, b.Timestamp = stamp(t.at.Time), t.at.Time.UnixMilli()
	}
	if t.run != nil {
		o.RunID = t.run.id
	}
	if t.team != nil {
		o.Member = t.at.Via.Route
		o.RunID = first(t.of, o.RunID)
	}
	b.Metadata = &wire.Metadata{Waggle: o}
	return b
}

// emit appends a frame of the open stretch.
func (t *Thread) emit(frame any) { t.out.add(frame, t.Open(), Everywhere, false) }

// custom appends an event that the protocol has no form for.
func (t *Thread) custom(name string, value any) {
	t.emit(wire.CustomEvent{Base: t.base(wire.Custom), Name: name, Value: value})
}

// owner returns the id of the subagent that does a piece of work, as the variant shows it: a frame has no owner that has
// not begun, or has ended.
func (t *Thread) owner(work string) string {
	if !t.variant.subagents || work == "" || t.run == nil {
		return ""
	}
	for _, s := range t.run.subs {
		if s.work == work && !s.suspended {
			return s.id
		}
	}
	return ""
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

// show shows the whole content of an activity.
func (t *Thread) show(id, kind, sub string, content any) {
	a := t.run.activity(id)
	if a == nil {
		a = &activity{id: id, kind: kind, sub: sub}
		t.run.acts = append(t.run.acts, a)
	}
	a.content, a.size, a.within = content, length(content), t.run.stretch
	t.keep(a)
	t.emit(t.whole(a))
}

// keep has the history have the newest content of an activity.
func (t *Thread) keep(a *activity) {
	t.history.show(a)
	if t.past != nil {
		t.past.messages[a.id] = true
	}
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
	t.keep(a)
	if t.out.mute {
		return
	}
	delta := wire.Activity{Base: t.base(wire.ActivityDelta), MessageID: a.id, ActivityType: a.kind, Patch: patch, SubagentRunID: t.owner(a.sub)}
	whole := t.whole(a)
	if !t.out.given() && length(whole) < length(delta) {
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
		t.emit(t.begun(s))
		return
	}
	t.subStatus(s, "running")
}

// begun is the first frame of a subagent.
func (t *Thread) begun(s *sub) wire.Subagent {
	return wire.Subagent{
		Base: t.base(wire.SubagentStarted), SubagentRunID: s.id, Name: s.name, Description: s.description, ParentSubagentRunID: t.owner(s.parent),
	}
}

// subStatus shows a subagent as an activity, for variants that have no other form.
func (t *Thread) subStatus(s *sub, status string) {
	t.show("subagent-"+s.id, wire.ActivitySubagent, "", members("id", s.id, "name", s.name, "description", s.description, "parent", s.parent, "status", status))
}

// suspend ends the stretch of a subagent that continues after an answer.
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

		EditedArgs json.RawMessage `json:"editedArgs,omitempty"`
	}{q.Interrupt, q.status(), q.Decision, q.By, q.ClientID, q.changed}
}

// by is the subagent that a piece of work belongs to, empty for the run itself.
func (t *Thread) by(p event.Part) string {
	switch {
	case t.team == nil:
		return t.run.subOf(p)
	case t.team.speaksFor(t.team.active[t.of]):
		return ""
	}
	return t.of
}

// working reports whether a run of the thread is open.
func (t *Thread) working() bool { return t.run != nil && !t.run.over }
