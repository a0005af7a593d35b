package fold

import (
	"slices"

	"github.com/waggle-dev/waggle/gateway/content"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func todosUpdated(t *Thread, d event.TodosUpdatedData) {
	t.ensure()
	t.show("todos", wire.ActivityTodos, "", map[string]any{"todos": d.Todos})
}

func artifactShown(t *Thread, a event.Artifact) {
	t.ensure()
	t.show(a.ArtifactID, wire.ActivityArtifact, "", members(
		"artifactId", a.ArtifactID, "path", a.Path, "type", a.Type, "url", content.ArtifactURL(a), "size", a.Size, "toolCallId", a.CallID,
	))
}

func artifactPersisted(t *Thread, d event.ArtifactPersistedData) { artifactShown(t, d.Artifact) }

func artifactUpdated(t *Thread, d event.ArtifactUpdatedData) { artifactShown(t, d.Artifact) }

func retryScheduled(t *Thread, d event.RetryScheduledData) {
	t.ensure()
	t.custom(wire.CustomRetry, members(
		"code", d.Code, "message", d.Message, "retryAfterMs", d.RetryAfterMS, "attempt", d.Attempt, "maxAttempts", d.MaxAttempts, "taskId", d.StepID,
	))
}

func requestFailed(t *Thread, d event.RequestFailedData) {
	t.ensure()
	t.custom(wire.CustomRetry, members(
		"code", d.Code, "message", d.Text(), "retryAfterMs", d.RetryAfterMS, "attempt", d.Try, "maxAttempts", d.MaxTries, "taskId", d.StepID, "nextModel", d.NextModel,
	))
}

func noticed(t *Thread, d event.NoticeData) {
	if t.Open() != "" && (d.RunID == "" || d.RunID == t.run.id) {
		t.custom(wire.CustomNotice, members("level", d.Level, "code", d.Code, "message", d.Message))
	}
}

// memberNoticed is noticed for a notice of a member's log.
func memberNoticed(t *Thread, d event.NoticeData) {
	t.ensure()
	t.custom(wire.CustomNotice, members("level", d.Level, "code", d.Code, "message", d.Message))
}

func errorReported(t *Thread, d event.ErrorData) {
	if t.Open() != "" && (d.RunID == "" || d.RunID == t.run.id) {
		t.custom(wire.CustomError, members("code", d.Code, "message", d.Message, "recovery", d.Recovery))
	}
}

// usageRecorded adds to the sums of the stretch.
func usageRecorded(t *Thread, d event.UsageRecordedData) {
	r := t.run
	i := slices.IndexFunc(r.usage, func(u wire.TokenUsage) bool { return u.Model == d.Model })
	if i < 0 {
		i, r.usage = len(r.usage), append(r.usage, wire.TokenUsage{Model: d.Model})
	}
	u := &r.usage[i]
	u.InputTokens += d.InputTokens
	u.OutputTokens += d.OutputTokens
	u.TotalTokens += d.InputTokens + d.OutputTokens
	u.ReasoningTokens += d.ReasoningTokens
	u.CachedInputTokens += d.CachedTokens
	u.CacheWriteInputTokens += d.CacheWriteTokens
}
