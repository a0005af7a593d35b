package fold

import (
	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/gateway/narrate"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

func sessionCreated(t *Thread, d event.SessionCreatedData) {
	if t.name = input.ExtraOf(d.Extra).ThreadID; t.id == "" {
		t.id = t.name
	}
}

func sessionClosed(t *Thread, _ event.SessionClosedData) { t.closed = t.seq }

func messageReceived(t *Thread, d event.MessageReceivedData) {
	t.waiting[d.RunID] = d
	if t.past != nil {
		t.past.messages[t.variant.userMessage(d).ID], t.past.asked = true, true
	}
	if d.Queued > 0 {
		t.queued(d)
	}
}

func messageRefused(t *Thread, d event.MessageRefusedData) {
	if t.past != nil {
		t.past.refuse(d)
	}
}

// queued begins the own stream of a run that waits for its turn.
func (t *Thread) queued(d event.MessageReceivedData) {
	x := input.ExtraOf(d.Extra)
	id := runIDOf(d)
	t.out.add(t.started(id, x.ParentRunID, t.variant.inputOf(d)), id, OwnStream, false)
	t.out.add(wire.CustomEvent{Base: t.base(wire.Custom), Name: wire.CustomQueued, Value: map[string]int{"ahead": d.Queued}}, id, OwnStream, false)
}

func runStarted(t *Thread, d event.RunStartedData) {
	if r := t.run; r != nil && !r.over {
		if r.id == d.RunID {
			return
		}
		t.ensure() // a log that has lost the end of a run
		t.conclude(&ending{failure: &wire.Failure{Base: t.stamped(wire.RunError, wire.Origin{}), Message: "The end of the run is missing.", Code: string(fault.HeadExpired)}})
	}
	m, known := t.waiting[d.RunID]
	t.run = newRun(d)
	if d.MaxConcurrent > 0 {
		t.run.limit = d.MaxConcurrent
	}
	if !known {
		m = event.MessageReceivedData{MessageID: d.MessageID, RunID: d.RunID, Content: d.Content}
	}
	t.remember(t.variant.userMessage(m), false)
	t.begin(runIDOf(m), input.ExtraOf(m.Extra).ParentRunID, t.variant.inputOf(m))
	delete(t.waiting, d.RunID)
}

func runCompleted(t *Thread, d event.RunCompletedData) {
	t.ensure()
	messageID := d.MessageID
	if d.Content != "" && !t.run.said[d.MessageID] {
		messageID = d.RunID + "-answer"
		t.answer(messageID, d.Content)
	}
	t.conclude(&ending{boundary: &wire.Boundary{
		Base: t.stamped(wire.RunFinished, wire.Origin{}), Result: &wire.Result{Outcome: first(d.Outcome, wire.OutcomeSuccess), MessageID: messageID, StopReason: d.StopReason},
		Outcome: &wire.Outcome{Type: wire.OutcomeSuccess}, Usage: t.run.usage,
	}})
}

// answer says a text that no message has said.
func (t *Thread) answer(id, content string) {
	x := t.openText(id, event.Part{})
	t.say(x, content)
	t.closeText(x)
}

func runFailed(t *Thread, d event.RunFailedData) {
	t.ensure()
	if d.Answer != "" {
		t.answer(d.RunID+"-answer", d.Answer)
	}
	code, message := narrate.Fault(d.Code, d.Message)
	t.conclude(&ending{failure: &wire.Failure{Base: t.stamped(wire.RunError, wire.Origin{}), Message: message, Code: code, Usage: t.run.usage}})
}

// notBegun ends the own stream of a run that was cancelled before its turn.
func notBegun(t *Thread, e event.Event) {
	d, ok := dataOf[event.RunCancelledData](&t.out, e)
	m, waits := t.waiting[d.RunID]
	if !ok || !waits {
		return
	}
	delete(t.waiting, d.RunID)
	id := runIDOf(m)
	if m.Queued == 0 { // its own stream has not begun
		t.out.add(t.started(id, input.ExtraOf(m.Extra).ParentRunID, t.variant.inputOf(m)), id, OwnStream, false)
	}
	t.out.add(t.cancelled(id), id, OwnStream, true)
	if t.past != nil {
		t.past.stretches[id] = Stretch{Run: m.RunID, Begun: t.seq, Ended: t.seq}
	}
}

func runCancelled(t *Thread, _ event.RunCancelledData) {
	t.ensure()
	t.conclude(t.calledOff())
}

// calledOff is the ending of a cancelled run.
func (t *Thread) calledOff() *ending {
	e := &ending{}
	switch frame := t.cancelled(t.run.last).(type) {
	case wire.Failure:
		e.failure = &frame
	case wire.Boundary:
		frame.Usage = t.run.usage
		e.boundary = &frame
	}
	return e
}
