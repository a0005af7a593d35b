package fold

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"strings"

	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// handlers fold the types that a chat knows. It passes over all others.
var handlers = map[event.Type]func(*Chat, event.Event){
	event.SessionClosed:   func(t *Chat, _ event.Event) { t.closed = true },
	event.MessageReceived: with(messageReceived),
	event.MessageRefused:  with(messageRefused),
	event.RunStarted:      with(runStarted),
	event.RunCompleted:    inRun(runCompleted),
	event.RunFailed:       inRun(runFailed),
	event.RunCancelled:    func(t *Chat, e event.Event) { with(notBegun)(t, e); inRun(runCancelled)(t, e) },

	event.MessageStarted:     inRun(func(t *Chat, _ event.MessageStartedData) { t.ensure() }),
	event.MessageDelta:       inRun(messageDelta),
	event.MessageCompleted:   inRun(messageCompleted),
	event.MessageDiscarded:   inRun(messageDiscarded),
	event.ReasoningDelta:     inRun(reasoningDelta),
	event.ReasoningCompleted: inRun(reasoningCompleted),

	event.ToolCalled:    inRun(toolCalled),
	event.ToolCompleted: inRun(toolCompleted),
	event.ToolFailed:    inRun(toolFailed),
	event.ToolUnknown:   inRun(toolUnknown),

	event.PlanStarted:        inRun(planStarted),
	event.PlanCompleted:      inRun(planCompleted),
	event.PlanInvalid:        inRun(planInvalid),
	event.PlanCancelled:      inRun(planCancelled),
	event.StepStarted:        inRun(stepStarted),
	event.StepCompleted:      inRun(stepCompletes),
	event.StepFailed:         inRun(stepFails),
	event.StepCancelled:      inRun(stepCancels),
	event.StepRestarted:      inRun(stepRestarts),
	event.AggregateStarted:   inRun(aggregateStarted),
	event.AggregateCompleted: inRun(aggregateCompleted),
	event.JobStarted:         inRun(jobStarted),
	event.JobFailed:          inRun(jobFailed),
	event.JobSuspended:       inRun(jobSuspended),

	event.InputRequested: inRun(inputRequested),
	event.InputAnswered:  inRun(inputAnswered),
	event.InputExpired:   inRun(inputExpired),

	event.UsageRecorded:     inRun(usageRecorded),
	event.RetryScheduled:    inRun(retryScheduled),
	event.RequestFailed:     inRun(requestFailed),
	event.TodosUpdated:      inRun(todosUpdated),
	event.ArtifactPersisted: inRun(func(t *Chat, d event.ArtifactPersistedData) { t.artifact(d.Artifact) }),
	event.ArtifactUpdated:   inRun(func(t *Chat, d event.ArtifactUpdatedData) { t.artifact(d.Artifact) }),
	event.Notice:            inRun(noticed),
	event.Error:             inRun(errorReported),
}

// extra is what a message of a client of this protocol keeps in the log besides.
type extra struct {
	MessageID string `json:"message_id,omitempty"` // as the client calls it
}

// extraKey is the member of RunSpec.Extra that has it.
const extraKey = "aisdk"

func extraOf(raw json.RawMessage) (x extra) {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) == nil {
		_ = json.Unmarshal(all[extraKey], &x) // another protocol has none
	}
	return x
}

func messageReceived(t *Chat, d event.MessageReceivedData) {
	t.waiting[d.RunID] = d
	if t.past == nil {
		return
	}
	t.past.asked = true
	t.past.runs[d.MessageID] = d.RunID
	t.past.texts[d.MessageID] = textDigest(d.Content)
}

// textDigest tells texts of one message apart, of which a client has changed one.
func textDigest(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}

func messageRefused(t *Chat, d event.MessageRefusedData) {
	p := t.past
	if p == nil {
		return
	}
	if _, known := p.refused[d.MessageID]; !known {
		p.order = append(p.order, d.MessageID)
	}
	p.refused[d.MessageID] = d
	for len(p.order) > maxRefused {
		delete(p.refused, p.order[0])
		p.order = p.order[1:]
	}
}

func runStarted(t *Chat, d event.RunStartedData) {
	if t.run != nil && t.run.id == d.RunID {
		return
	}
	if r := t.run; r != nil && !r.over { // a log that has lost the end of a run
		t.ensure()
		t.fail(string(fault.HeadExpired), "The end of the run is missing.")
	}
	m, known := t.waiting[d.RunID]
	delete(t.waiting, d.RunID)
	if !known {
		m = event.MessageReceivedData{MessageID: d.MessageID, RunID: d.RunID, Content: d.Content}
	}
	t.add(userMessage(m))
	t.run = newRun(d, m.ClientTools)
	t.add(t.run.message)
	t.begin(&Metadata{CreatedAt: t.time()})
}

// userMessage returns a message of a user as its client wrote it.
func userMessage(d event.MessageReceivedData) *Message {
	m := &Message{ID: first(extraOf(d.Extra).MessageID, d.MessageID), Role: RoleUser, size: len(d.Content) + partSize}
	if d.Content != "" || len(d.Files)+len(d.ImageURLs)+len(d.ContextFiles) == 0 {
		m.Parts = append(m.Parts, Part{Type: partText, Text: d.Content})
	}
	for _, u := range d.ImageURLs {
		m.Parts = append(m.Parts, Part{Type: partFile, URL: u, MediaType: event.FileImage})
	}
	for _, u := range d.ContextFiles {
		if strings.HasPrefix(u, "https://") || strings.HasPrefix(u, "http://") {
			m.Parts = append(m.Parts, Part{Type: partFile, URL: u, MediaType: "application/octet-stream"})
		}
	}
	for _, f := range d.Files {
		m.Parts = append(m.Parts, Part{Type: partFile, URL: content.FileURL(f), MediaType: f.MediaType, Filename: f.Name})
	}
	return m
}

func runCompleted(t *Chat, d event.RunCompletedData) {
	t.ensure()
	if d.Content != "" && !t.run.said[d.MessageID] {
		t.answer(d.RunID+"-answer", d.Content)
	}
	m := &Metadata{Outcome: cmp.Or(d.Outcome, "success"), StopReason: d.StopReason, Usage: t.used()}
	t.conclude("The run has ended.", Chunk{Type: Finish, FinishReason: finishReason(d.StopReason), Metadata: m})
}

// answer says a text that no message of the model has said.
func (t *Chat) answer(id, text string) {
	t.stepOf(id, event.Part{})
	t.say(id, text, event.Part{})
	t.closeAll(id, nil)
}

func runFailed(t *Chat, d event.RunFailedData) {
	t.ensure()
	if d.Answer != "" {
		t.answer(d.RunID+"-answer", d.Answer)
	}
	code, message := narrate.Fault(d.Code, d.Message)
	t.fail(code, message)
}

// fail ends the run with an error.
func (t *Chat) fail(code, message string) {
	m := &Metadata{Outcome: outcomeFailed, Error: &Failure{code, message}, Usage: t.used()}
	t.conclude(message, append([]Chunk{{Type: MessageMetadata, Metadata: m}}, ended(m)...)...)
}

// Outcomes that no event names.
const (
	outcomeFailed    = "failed"
	outcomeCancelled = "cancelled"
)

// ended returns the last chunks of a run that has ended as its metadata says.
func ended(m *Metadata) []Chunk {
	switch {
	case m == nil:
		return []Chunk{{Type: Finish, FinishReason: FinishOther}}
	case m.Error != nil:
		return []Chunk{{Type: Error, ErrorText: m.Error.Message, Code: m.Error.Code}, {Type: Finish, FinishReason: FinishError}}
	case m.Outcome == outcomeCancelled:
		return []Chunk{{Type: Abort, Reason: outcomeCancelled}, {Type: Finish, FinishReason: FinishOther}}
	}
	return []Chunk{{Type: Finish, FinishReason: finishReason(m.StopReason), Metadata: m}}
}

func finishReason(stop string) string {
	switch stop {
	case "", event.StopEnd:
		return FinishStop
	case event.StopLength:
		return FinishLength
	case event.StopFiltered, event.StopRefused:
		return FinishFiltered
	}
	return FinishOther
}

// notBegun forgets a run that was cancelled before its turn.
func notBegun(t *Chat, d event.RunCancelledData) {
	m, waits := t.waiting[d.RunID]
	if !waits {
		return
	}
	delete(t.waiting, d.RunID)
	if t.mute || t.run != nil && t.run.id == d.RunID {
		return
	}
	gone := &Metadata{Outcome: outcomeCancelled}
	frames := t.encoded(append([]Chunk{{Type: Start, MessageID: m.RunID}}, ended(gone)...)...)
	for i := range frames {
		frames[i].Run, frames[i].Stretch, frames[i].Ends = m.RunID, 1, i == len(frames)-1
	}
	t.frames = append(t.frames, frames...)
}

func runCancelled(t *Chat, _ event.RunCancelledData) {
	t.ensure()
	m := &Metadata{Outcome: outcomeCancelled, Usage: t.used()}
	t.conclude("The run was stopped.", append([]Chunk{{Type: MessageMetadata, Metadata: m}}, ended(m)...)...)
}

// used returns the tokens of the run, nil for none.
func (t *Chat) used() *Usage {
	if t.run.usage == (Usage{}) {
		return nil
	}
	u := t.run.usage
	return &u
}

func usageRecorded(t *Chat, d event.UsageRecordedData) {
	u := &t.run.usage
	u.InputTokens += d.InputTokens
	u.OutputTokens += d.OutputTokens
	u.TotalTokens += d.InputTokens + d.OutputTokens
	u.ReasoningTokens += d.ReasoningTokens
	u.CachedInputTokens += d.CachedTokens
}
