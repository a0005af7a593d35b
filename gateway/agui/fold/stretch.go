package fold

import (
	"slices"
	"strconv"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/narrate"
)

// begin begins a stretch. A stretch that has the id of another one gets another.
func (t *Thread) begin(id, parent string, input *wire.Input) {
	r := t.run
	for slices.Contains(r.ids, id) {
		id = following(id)
	}
	t.alias = ""
	r.ids = append(r.ids, id)
	r.stretch, r.last, r.end = id, id, nil
	r.usage, r.used = nil, map[string]int{}
	if t.past != nil {
		t.past.stretches[id] = Stretch{Run: r.id, Begun: t.seq}
	}
	shown := Everywhere
	if input != nil && t.waiting[r.id].Queued > 0 {
		shown = ThreadStream
	}
	t.out.add(t.started(id, parent, input), id, shown, false)
	for _, name := range r.steps {
		t.emit(wire.Step{Base: t.base(wire.StepStarted), StepName: name})
	}
	for _, s := range r.subs {
		t.announce(s)
	}
	for _, q := range r.deferred {
		t.answerShown(q)
	}
	r.deferred = nil
}

// following returns the id of the stretch that follows one with the id by itself: x, x~2, x~3.
func following(id string) string {
	for i := len(id) - 1; i > 0; i-- {
		if id[i] == '~' {
			if n, err := strconv.Atoi(id[i+1:]); err == nil {
				return id[:i+1] + strconv.Itoa(n+1)
			}
			break
		}
	}
	return id + "~2"
}

func (t *Thread) started(id, parent string, input *wire.Input) wire.Boundary {
	if t.out.mute {
		return wire.Boundary{}
	}
	if input != nil {
		input.ThreadID, input.RunID = t.id, id
	}
	return wire.Boundary{
		Base: t.base(wire.RunStarted), ThreadID: t.id, RunID: t.label(id), ProtocolVersion: wire.Version, ParentRunID: parent, Input: input,
	}
}

// ensure begins a stretch where a frame is due and none is open: something continued without an answer of people.
func (t *Thread) ensure() {
	if t.run != nil && !t.run.over && t.run.stretch == "" {
		t.begin(t.run.last, "", nil)
	}
}

// rest ends the stretch if nothing moves but people.
func (r *run) rest(t *Thread) {
	if r.over || r.stretch == "" || r.moves() {
		return
	}
	open := r.interrupts()
	for i := range open {
		open[i].SubagentRunID = t.owner(open[i].SubagentRunID)
	}
	t.closeTexts("")
	for _, s := range slices.Backward(r.subs) {
		t.suspend(s, r.awaited(s.work))
	}
	t.closeSteps()
	t.finish(&ending{boundary: &wire.Boundary{Base: t.stamped(wire.RunFinished, wire.Origin{}), Outcome: t.outcome(open), Usage: r.usage}})
}

// outcome is that of a stretch which waits for people, or for the client.
func (t *Thread) outcome(open []wire.Interrupt) *wire.Outcome {
	switch {
	case len(open) > 0:
	case t.variant.pending:
		return &wire.Outcome{Type: wire.OutcomeSuccess, PendingToolCallIDs: t.run.pending()}
	default: // its clients find the calls without results themselves
		return &wire.Outcome{Type: wire.OutcomeSuccess}
	}
	return &wire.Outcome{Type: wire.OutcomeInterrupt, Interrupts: open}
}

// finish ends the stretch.
func (t *Thread) finish(e *ending) {
	r := t.run
	r.end = e
	t.out.add(t.ended(), r.stretch, Everywhere, true)
	if t.past != nil {
		s := t.past.stretches[r.stretch]
		s.Ended = t.seq
		t.past.stretches[r.stretch] = s
	}
	r.stretch = ""
}

// ended returns the last frame of the newest stretch.
func (t *Thread) ended() any {
	e := t.run.end
	if e.failure != nil {
		return *e.failure
	}
	b := *e.boundary
	b.ThreadID, b.RunID = t.id, t.label(t.run.last)
	if open := t.run.interrupts(); !t.run.over && len(open)+len(t.run.pending()) > 0 && len(t.run.deferred) > 0 { // some are answered
		b.Outcome = t.outcome(open)
	}
	return b
}

// label is the id of a stretch in its boundaries.
func (t *Thread) label(id string) string {
	if t.alias != "" && t.run != nil && id == t.run.last {
		return t.alias
	}
	return id
}

func (t *Thread) closeSteps() {
	for _, name := range slices.Backward(t.run.steps) {
		t.emit(wire.Step{Base: t.base(wire.StepFinished), StepName: name})
	}
}

// step begins a step, unless it is open.
func (t *Thread) step(name string) {
	if !slices.Contains(t.run.steps, name) {
		t.run.steps = append(t.run.steps, name)
		t.emit(wire.Step{Base: t.base(wire.StepStarted), StepName: name})
	}
}

// stepped ends a step, if it is open.
func (t *Thread) stepped(name string) {
	if i := slices.Index(t.run.steps, name); i >= 0 {
		t.run.steps = slices.Delete(t.run.steps, i, i+1)
		t.emit(wire.Step{Base: t.base(wire.StepFinished), StepName: name})
	}
}

// endSub ends the subagent of a job, after its messages.
func (t *Thread) endSub(work string, end func(wire.Subagent) wire.Subagent) {
	r := t.run
	i := slices.IndexFunc(r.subs, func(s *sub) bool { return s.work == work })
	if i < 0 {
		return
	}
	t.ensure()
	s := r.subs[i]
	t.closeTexts(s.work)
	r.subs = slices.Delete(r.subs, i, i+1)
	b := end(wire.Subagent{SubagentRunID: s.id})
	b.Base = t.base(b.Type)
	if t.variant.subagents {
		t.emit(b)
		return
	}
	status := taskCompleted
	if b.Message != "" {
		status = taskFailed
	}
	t.subStatus(s, status)
}

// conclude ends everything that is open in the run, and the run.
func (t *Thread) conclude(e *ending) {
	r := t.run
	t.closeTexts("")
	for _, s := range append([]*sub{}, r.subs...) {
		t.endSub(s.work, failedSub("The run has ended.", "CANCELLED"))
	}
	t.closeSteps()
	r.steps, r.over = nil, true
	t.finish(e)
}

// cancelled returns the last frame of a stretch that was cancelled.
func (t *Thread) cancelled(stretch string) any {
	if !t.variant.cancelled {
		code, message := narrate.Fault("RUN_CANCELLED", "")
		return wire.Failure{Base: t.stamped(wire.RunError, wire.Origin{}), Message: message, Code: code}
	}
	return wire.Boundary{
		Base: t.stamped(wire.RunFinished, wire.Origin{}), ThreadID: t.id, RunID: stretch, Outcome: &wire.Outcome{Type: wire.OutcomeCancelled},
	}
}
