package fold

import (
	"encoding/json"
	"strings"

	"github.com/waggle-dev/waggle/gateway/content"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Todos is the data of a part data-todos: the whole list of an agent.
type Todos struct {
	Todos []event.Todo `json:"todos"`
}

// Artifact is the data of a part data-artifact: a file that an agent has made.
type Artifact struct {
	ArtifactID string `json:"artifactId"`
	Path       string `json:"path"`
	Type       string `json:"type"`
	URL        string `json:"url,omitempty"` // relative to the gateway
	Size       int64  `json:"size,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
}

// Retry is the data of a part data-retry, which no message keeps: failed work is repeated after a pause.
type Retry struct {
	Code         string `json:"code"`
	Message      string `json:"message"`
	RetryAfterMS int64  `json:"retryAfterMs"`
	Attempt      int    `json:"attempt"`
	MaxAttempts  int    `json:"maxAttempts"`
	StepID       string `json:"stepId,omitempty"`
}

// Notice is the data of a part data-notice, which no message keeps.
type Notice struct {
	Level   string `json:"level"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func todosUpdated(t *Chat, d event.TodosUpdatedData) {
	t.ensure()
	t.emit(Chunk{Type: DataTodos, ID: "todos", Data: Todos{d.Todos}})
}

func (t *Chat) artifact(a event.Artifact) {
	t.ensure()
	t.emit(Chunk{Type: DataArtifact, ID: a.ArtifactID, Data: Artifact{a.ArtifactID, a.Path, a.Type, content.ArtifactURL(a), a.Size, a.CallID}})
}

func retryScheduled(t *Chat, d event.RetryScheduledData) {
	t.ensure()
	t.emit(Chunk{Type: DataRetry, Transient: true, Data: Retry{d.Code, d.Message, d.RetryAfterMS, d.Attempt, d.MaxAttempts, d.StepID}})
}

func requestFailed(t *Chat, d event.RequestFailedData) {
	t.ensure()
	t.emit(Chunk{Type: DataRetry, Transient: true, Data: Retry{d.Code, d.Text(), d.RetryAfterMS, d.Try, d.MaxTries, d.StepID}})
}

func noticed(t *Chat, d event.NoticeData) { t.notice(Notice{d.Level, d.Code, d.Message}) }

func errorReported(t *Chat, d event.ErrorData) { t.notice(Notice{"error", d.Code, d.Message}) }

// notice tells something while the run is at work.
func (t *Chat) notice(n Notice) {
	if t.run.open {
		t.emit(Chunk{Type: DataNotice, Transient: true, Data: n})
	}
}

// quote returns a text as JSON.
func quote(text string) json.RawMessage { return raw(text) }

// raw returns a value as JSON.
func raw(v any) json.RawMessage {
	out, _ := plainjson.Marshal(v) //nolint:errchkjson // structs of strings and numbers
	return out
}

// object returns the arguments of a call: an object, whatever the model has written.
func object(arguments []byte) json.RawMessage {
	if json.Valid(arguments) {
		return arguments
	}
	return json.RawMessage("{}")
}

// value returns the result of a tool of the page: JSON where it is an object or a list, and the text otherwise.
func value(result string) json.RawMessage {
	if text := strings.TrimSpace(result); (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return quote(result)
}
