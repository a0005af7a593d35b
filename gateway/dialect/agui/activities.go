package agui

import (
	"encoding/json"
	"unicode/utf8"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// activity is one of the run, with its newest content. The content is not modified.
type activity struct {
	id, kind, sub string
	content       any
	within        string // the newest stretch that has shown the whole of it
}

func (r *run) activity(id string) *activity {
	for _, a := range r.acts {
		if a.id == id {
			return a
		}
	}
	return nil
}

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

// cutName bounds the name of a step or a subagent.
func cutName(name string) string {
	if len(name) <= maxName {
		return name
	}
	name = name[:maxName]
	for !utf8.ValidString(name) {
		name = name[:len(name)-1]
	}
	return name
}

func todosUpdated(t *Thread, d event.TodosUpdatedData) {
	t.ensure()
	t.show("todos", wire.ActivityTodos, "", map[string]any{"todos": d.Todos})
}

func artifactShown(t *Thread, a event.Artifact) {
	t.ensure()
	t.show(a.ArtifactID, wire.ActivityArtifact, "", map[string]any{
		"artifactId": a.ArtifactID, "path": a.Path, "type": a.Type, "url": a.URL, "toolCallId": a.CallID,
	})
}

func artifactPersisted(t *Thread, d event.ArtifactPersistedData) { artifactShown(t, d.Artifact) }
func artifactUpdated(t *Thread, d event.ArtifactUpdatedData)     { artifactShown(t, d.Artifact) }

func retryScheduled(t *Thread, d event.RetryScheduledData) {
	t.ensure()
	t.custom(wire.CustomRetry, map[string]any{
		"code": d.Code, "message": d.Message, "retryAfterMs": d.RetryAfterMS, "attempt": d.Attempt, "maxAttempts": d.MaxAttempts, "taskId": d.StepID,
	})
}

func requestFailed(t *Thread, d event.RequestFailedData) {
	t.ensure()
	t.custom(wire.CustomRetry, map[string]any{
		"code": d.Code, "message": d.Text(), "retryAfterMs": d.RetryAfterMS, "attempt": d.Try, "maxAttempts": d.MaxTries, "taskId": d.StepID,
	})
}

func noticed(t *Thread, d event.NoticeData) {
	if t.Open() != "" && (d.RunID == "" || d.RunID == t.run.id) {
		t.custom(wire.CustomNotice, map[string]any{"level": d.Level, "code": d.Code, "message": d.Message})
	}
}

func errorReported(t *Thread, d event.ErrorData) {
	if t.Open() != "" && (d.RunID == "" || d.RunID == t.run.id) {
		t.custom(wire.CustomError, map[string]any{"code": d.Code, "message": d.Message, "recovery": d.Recovery})
	}
}

// usageRecorded adds to the sums of the stretch.
func usageRecorded(t *Thread, d event.UsageRecordedData) {
	r := t.run
	for i := range r.usage {
		if u := &r.usage[i]; u.Model == d.Model {
			u.InputTokens, u.OutputTokens, u.TotalTokens = u.InputTokens+d.InputTokens, u.OutputTokens+d.OutputTokens, u.TotalTokens+d.InputTokens+d.OutputTokens
			return
		}
	}
	r.usage = append(r.usage, wire.TokenUsage{Model: d.Model, InputTokens: d.InputTokens, OutputTokens: d.OutputTokens, TotalTokens: d.InputTokens + d.OutputTokens})
}

// raw returns a value as JSON.
func raw(v any) json.RawMessage {
	out, _ := plainjson.Marshal(v) //nolint:errchkjson // maps and structs of strings and numbers
	return out
}
