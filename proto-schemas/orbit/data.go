package orbit

import (
	"encoding/json"
	"strconv"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Texts that are the same in every frame of their type, as the protocol fixes them.
const (
	StartText       = "Initializing ORBIT Agent..."
	ReadyText       = "Agent initialized successfully"
	ThinkingText    = "Processing your request..."
	StatusExecuting = "executing"
	StatusCompleted = "completed"
)

// UserMessageIn is the message with which a user asks for an answer. The text is
// top-level content (what clients send) or data.content; the former wins.
type UserMessageIn struct {
	Type    string        `json:"type"`
	ID      string        `json:"id,omitempty"` // not in the original protocol: a repeat is answered once
	Content *string       `json:"content,omitempty"`
	Data    *UserTextData `json:"data,omitempty"`
}

// UserTextData is the payload of a user_message in its second form.
type UserTextData struct {
	Content string `json:"content"`
}

// CancelIn stops the active run. It is not in the original protocol.
type CancelIn struct {
	Type string `json:"type"`
	ID   string `json:"id,omitempty"`
}

// AnswerIn answers a question. It is not in the original protocol.
type AnswerIn struct {
	Type       string `json:"type"`
	ID         string `json:"id,omitempty"`
	QuestionID string `json:"question_id"`
	Approved   bool   `json:"approved"`
	Feedback   string `json:"feedback,omitempty"` // why; to an agent that asks for a text, the text
}

// MessageData is the payload of agent_start and user_input.
type MessageData struct {
	Message string `json:"message"`
}

// AppendJSON implements plainjson.Appender.
func (d MessageData) AppendJSON(b []byte) []byte {
	return append(plainjson.AppendString(append(b, `{"message":`...), d.Message), '}')
}

// ThoughtData is the payload of agent_thinking. All but Message are not in the original protocol.
type ThoughtData struct {
	Message   string    `json:"message"`
	Question  *Question `json:"question,omitempty"`   // people are asked
	Code      string    `json:"code,omitempty"`       // of a notice, or of the problem for which the model is asked again
	MessageID string    `json:"message_id,omitempty"` // Message is the whole reasoning that this message follows from
}

// Question is what an answer refers to. Scopes: plan, tool, task.
type Question struct {
	ID             string          `json:"id"`
	Scope          string          `json:"scope"`                     // task: an agent of the swarm asks
	Tool           string          `json:"tool,omitempty"`            // of scope tool
	Arguments      json.RawMessage `json:"arguments,omitempty"`       // of scope tool; a JSON object
	Options        json.RawMessage `json:"options,omitempty"`         // of scope task: what the agent offers, any JSON
	TimeoutSeconds int             `json:"timeout_seconds,omitempty"` // absent: it stays open
}

// ReadyData is the payload of agent_ready.
type ReadyData struct {
	Message   string `json:"message"`
	SessionID string `json:"session_id"` // not in the original protocol: come back with ?session=
	LastSeq   uint64 `json:"last_seq"`   // not in the original protocol: frames after it follow
}

// ToolCalledData is the payload of tool_called. Arguments is a JSON object.
type ToolCalledData struct {
	ToolName    string          `json:"tool_name"`
	Description string          `json:"description"`
	Arguments   json.RawMessage `json:"arguments"`
}

// ToolExecutingData is the payload of tool_executing.
type ToolExecutingData struct {
	ToolName string `json:"tool_name"`
	Status   string `json:"status"`
}

// ToolResultData is the payload of tool_result. Result is a preview of at most
// PreviewLimit characters, followed by "..." if it was cut.
type ToolResultData struct {
	ToolName string `json:"tool_name"`
	Status   string `json:"status"`
	Result   string `json:"result"`
}

// PreviewLimit is the length of tool_result.result in Unicode code points. It is
// the original server's.
const PreviewLimit = 200

// ResponseData is the payload of agent_response.
type ResponseData struct {
	Message            string `json:"message"`
	ExecutionCompleted bool   `json:"execution_completed"`
	StopReason         string `json:"stop_reason,omitempty"` // not in the original protocol: of an answer that is not complete

	Question *Question `json:"question,omitempty"` // not in the original protocol: people are asked, and the run is not over
}

// AppendJSON implements plainjson.Appender.
func (d ResponseData) AppendJSON(b []byte) []byte {
	b = plainjson.AppendString(append(b, `{"message":`...), d.Message)
	b = strconv.AppendBool(append(b, `,"execution_completed":`...), d.ExecutionCompleted)
	if d.StopReason != "" {
		b = plainjson.AppendString(append(b, `,"stop_reason":`...), d.StopReason)
	}
	if d.Question != nil {
		q, err := plainjson.Marshal(d.Question)
		if err != nil { // its arguments are not JSON
			q = []byte("null")
		}
		b = append(append(b, `,"question":`...), q...)
	}
	return append(b, '}')
}

// ErrorData is the payload of error. All but Message are not in the original protocol.
type ErrorData struct {
	Message  string `json:"message"`
	Code     string `json:"code,omitempty"`      // from the error catalogue
	Field    string `json:"field,omitempty"`     // the offending member of the client's message
	FirstSeq uint64 `json:"first_seq,omitempty"` // history before it has expired
}

// DeltaData is the payload of agent_delta and agent_thinking_delta. The texts of one message_id and type, joined in
// order, are what the model has written so far, and what it has thought.
type DeltaData struct {
	MessageID string `json:"message_id"`
	Text      string `json:"text"`
}

// AppendJSON implements plainjson.Appender.
func (d DeltaData) AppendJSON(b []byte) []byte {
	b = plainjson.AppendString(append(b, `{"message_id":`...), d.MessageID)
	return append(plainjson.AppendString(append(b, `,"text":`...), d.Text), '}')
}

// DiscardedData is the payload of agent_delta_discarded: forget the text of this message, and its reasoning.
type DiscardedData struct {
	MessageID string `json:"message_id"`
	Reason    string `json:"reason"`
}

// Health is the answer of GET /health.
type Health struct {
	Status            string    `json:"status"`
	Service           string    `json:"service"`
	ActiveConnections int       `json:"active_connections"`
	Timestamp         Timestamp `json:"timestamp"`
}

// Values of GET /health on a healthy server.
const (
	HealthStatus  = "healthy"
	HealthService = "ORBIT WebSocket Server"
)
