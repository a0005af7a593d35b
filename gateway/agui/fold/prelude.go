package fold

import (
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
)

// Prelude returns the frames with which a viewer joins who has nothing of the thread: all messages, and what is open in the
// newest stretch. The frames that Next returns from then on continue with it. An ended stretch ends again. A thread without a
// run gives nothing.
func (t *Thread) Prelude() []Frame {
	if t.run == nil {
		return nil
	}
	r := t.run
	open := r.stretch != ""
	r.stretch = r.last
	t.emit(t.started(r.last, "", nil))
	t.state()
	if !open {
		t.out.add(t.ended(), r.last, Everywhere, true)
		r.stretch = ""
	}
	return t.out.take()
}

// state says what is open.
func (t *Thread) state() {
	r := t.run
	if t.history.cut != "" {
		t.custom(wire.CustomHistory, map[string]string{"before": t.history.list[0].ID})
	}
	t.snapshot()
	open := !r.over && r.end == nil
	if open {
		for _, name := range r.steps {
			t.emit(wire.Step{Base: t.base(wire.StepStarted), StepName: name})
		}
		for _, s := range r.subs {
			if t.variant.subagents {
				t.emit(t.begun(s))
			}
		}
	}
	for _, a := range r.acts {
		t.emit(t.whole(a))
	}
	if open {
		for _, x := range r.texts {
			t.textStarted(x)
		}
	}
}

// Idle returns the frames of a run that asks for nothing in a thread whose newest run is over: all messages.
func (t *Thread) Idle(runID, parent string) []Frame {
	started := wire.Boundary{Base: t.stamped(wire.RunStarted, wire.Origin{}), ThreadID: t.id, RunID: runID, ProtocolVersion: wire.Version, ParentRunID: parent}
	t.out.add(started, runID, Everywhere, false)
	t.out.add(wire.Snapshot{Base: t.base(wire.MessagesSnapshot), Messages: t.messages()}, runID, Everywhere, false)
	if t.run != nil {
		for _, a := range t.run.acts {
			t.out.add(t.whole(a), runID, Everywhere, false)
		}
	}
	t.out.add(wire.Boundary{
		Base: t.stamped(wire.RunFinished, wire.Origin{}), ThreadID: t.id, RunID: runID, Outcome: &wire.Outcome{Type: wire.OutcomeSuccess},
	}, runID, Everywhere, true)
	return t.out.take()
}

// Waiting returns the first frames of the own stream of a run that waits for its turn, by the id of its command.
func (t *Thread) Waiting(commandID string) []Frame {
	for _, m := range t.waiting {
		if m.MessageID == commandID && m.Queued > 0 {
			t.queued(m)
		}
	}
	return t.out.take()
}

// Snapshot returns all messages, as of no event.
func (t *Thread) Snapshot() []byte {
	return raw(wire.Snapshot{Base: t.stamped(wire.MessagesSnapshot, wire.Origin{}), Messages: t.messages()})
}

// Custom returns an event about the thread that no event of the log stands for.
func (t *Thread) Custom(name string, value any) []byte {
	return raw(wire.CustomEvent{Base: t.stamped(wire.Custom, wire.Origin{}), Name: name, Value: value})
}
