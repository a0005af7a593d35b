package agui

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/gateway/dialect/internal/data"
	"github.com/waggle-dev/waggle/gateway/dialect/narrate"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// handlers fold the types that the projection knows. It passes over all others.
var handlers = map[event.Type]func(*Thread, event.Event){
	event.SessionCreated:  with(sessionCreated),
	event.MessageReceived: with(messageReceived),
	event.RunStarted:      with(runStarted),

	event.RunCompleted: inRun(runCompleted),
	event.RunFailed:    inRun(runFailed),
	event.RunCancelled: func(t *Thread, e event.Event) { notBegun(t, e); inRun(runCancelled)(t, e) },

	event.MessageStarted:   inRun(messageStarted),
	event.MessageDelta:     inRun(messageDelta),
	event.MessageCompleted: inRun(messageCompleted),
	event.MessageDiscarded: inRun(messageDiscarded),
	event.ToolCalled:       inRun(toolCalled),
	event.ToolCompleted:    inRun(toolCompleted),
	event.ToolFailed:       inRun(toolFailed),
	event.ToolUnknown:      inRun(toolUnknown),

	event.PlanStarted:        inRun(planStarted),
	event.PlanCompleted:      inRun(planCompleted),
	event.PlanInvalid:        inRun(planInvalid),
	event.PlanCancelled:      inRun(planCancelled),
	event.StepStarted:        inRun(stepStarted),
	event.StepCompleted:      inRun(stepCompleted),
	event.StepFailed:         inRun(stepFailed),
	event.StepCancelled:      inRun(stepCancelled),
	event.StepRestarted:      inRun(stepRestarted),
	event.AggregateStarted:   inRun(aggregateStarted),
	event.AggregateCompleted: inRun(aggregateCompleted),

	event.JobStarted:   inRun(jobStarted),
	event.JobFailed:    inRun(jobFailed),
	event.JobSuspended: inRun(jobSuspended),

	event.InputRequested: inRun(inputRequested),
	event.InputAnswered:  inRun(inputAnswered),
	event.InputExpired:   inRun(inputExpired),

	event.UsageRecorded:     inRun(usageRecorded),
	event.RetryScheduled:    inRun(retryScheduled),
	event.RequestFailed:     inRun(requestFailed),
	event.TodosUpdated:      inRun(todosUpdated),
	event.ArtifactPersisted: inRun(artifactPersisted),
	event.ArtifactUpdated:   inRun(artifactUpdated),
	event.Notice:            with(noticed),
	event.Error:             with(errorReported),
}

// with decodes the event's data for f.
func with[T event.Data](f func(*Thread, T)) func(*Thread, event.Event) {
	return func(t *Thread, e event.Event) {
		if d, err := data.As[T](e); err == nil {
			f(t, d)
		}
	}
}

// inRun is with for events of the run that is on: what comes late about another one, or behind its end, is passed over.
func inRun[T event.Data](f func(*Thread, T)) func(*Thread, event.Event) {
	return func(t *Thread, e event.Event) {
		var of struct {
			RunID string `json:"run_id"`
		}
		if t.run == nil || t.run.over || json.Unmarshal(e.Data, &of) != nil || of.RunID != "" && of.RunID != t.run.id {
			return
		}
		if d, err := data.As[T](e); err == nil {
			f(t, d)
		}
	}
}

// Extra is what a client of AG-UI says about a thread or a message, and what is kept with it.
type Extra struct {
	ThreadID    string          `json:"thread_id,omitempty"`
	RunID       string          `json:"run_id,omitempty"` // as the client wrote it
	MessageID   string          `json:"message_id,omitempty"`
	ParentRunID string          `json:"parent_run_id,omitempty"`
	Forwarded   json.RawMessage `json:"forwarded,omitempty"`
	State       json.RawMessage `json:"state,omitempty"`
}

// extraOf returns the part of extra that is about AG-UI.
func extraOf(extra json.RawMessage) Extra {
	var d struct {
		AGUI Extra `json:"agui"`
	}
	_ = json.Unmarshal(extra, &d) // not of this protocol
	return d.AGUI
}

func sessionCreated(t *Thread, d event.SessionCreatedData) {
	if t.name = extraOf(d.Extra).ThreadID; t.id == "" {
		t.id = t.name
	}
}

func messageReceived(t *Thread, d event.MessageReceivedData) {
	t.waiting[d.RunID] = d
	if t.past != nil {
		t.past.messages[userMessage(d).ID] = true
	}
	if d.Queued > 0 {
		t.queued(d)
	}
}

// queued begins the own stream of a run that waits for its turn.
func (t *Thread) queued(d event.MessageReceivedData) {
	x := extraOf(d.Extra)
	id := runIDOf(d)
	t.emitFor(t.started(id, x.ParentRunID, inputOf(d)), id, OwnStream, false)
	t.emitFor(wire.CustomEvent{Base: t.base(wire.Custom), Name: wire.CustomQueued, Value: map[string]int{"ahead": d.Queued}}, id, OwnStream, false)
}

// runIDOf is the id of the first stretch of the run that answers a message.
func runIDOf(d event.MessageReceivedData) string { return first(extraOf(d.Extra).RunID, d.MessageID) }

// userMessage returns a message of a user as its client wrote it.
func userMessage(d event.MessageReceivedData) wire.Message {
	m := wire.Message{ID: first(extraOf(d.Extra).MessageID, d.MessageID), Role: wire.RoleUser, Content: quote(d.Content)}
	if len(d.ImageURLs) == 0 {
		return m
	}
	parts := []wire.Part{{Type: "text", Text: d.Content}}
	for _, u := range d.ImageURLs {
		parts = append(parts, wire.Part{Type: "image", Source: &wire.Source{Type: "url", Value: u}})
	}
	m.Content = raw(parts)
	return m
}

// inputOf is how other viewers get the user's words.
func inputOf(d event.MessageReceivedData) *wire.Input {
	return &wire.Input{Messages: []wire.Message{userMessage(d)}, Tools: []wire.Tool{}, Context: []wire.Context{}}
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
	t.remember(userMessage(m), false)
	t.begin(runIDOf(m), extraOf(m.Extra).ParentRunID, inputOf(m))
	delete(t.waiting, d.RunID)
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

func runCompleted(t *Thread, d event.RunCompletedData) {
	t.ensure()
	messageID := d.MessageID
	if d.Content != "" && !t.run.said[d.MessageID] {
		messageID = d.RunID + "-answer"
		t.answer(messageID, d.Content)
	}
	t.conclude(&ending{boundary: &wire.Boundary{
		Base: t.stamped(wire.RunFinished, wire.Origin{}), Result: &wire.Result{Outcome: first(d.Outcome, wire.OutcomeSuccess), MessageID: messageID},
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
	d, err := data.As[event.RunCancelledData](e)
	m, waits := t.waiting[d.RunID]
	if err != nil || !waits {
		return
	}
	delete(t.waiting, d.RunID)
	id := runIDOf(m)
	t.emitFor(t.cancelled(id), id, OwnStream, true)
	if t.past != nil {
		t.past.stretches[id] = Stretch{Run: m.RunID, Begun: t.seq, Ended: t.seq}
	}
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

func runCancelled(t *Thread, _ event.RunCancelledData) {
	t.ensure()
	e := &ending{}
	switch frame := t.cancelled(t.run.last).(type) {
	case wire.Failure:
		e.failure = &frame
	case wire.Boundary:
		frame.Usage = t.run.usage
		e.boundary = &frame
	}
	t.conclude(e)
}

func toolCompleted(t *Thread, d event.ToolCompletedData) { t.result(d.CallID, d.Result, "") }

func toolFailed(t *Thread, d event.ToolFailedData) {
	code, message := narrate.Fault(d.Code, d.Message)
	t.result(d.CallID, message, code)
}

func toolUnknown(t *Thread, d event.ToolUnknownData) { t.result(d.CallID, d.Message, "TOOL_LOST") }
