// Package team holds the wire types of the streaming protocol of agent teams: one Go
// type and one JSON Schema for every message type, and the examples of the protocol's
// description.
//
// The schemas are normative and generated from these types. Those of what clients send
// allow members that they do not name, because a server passes over what it does not
// know; those of what they are sent do not, because they say exactly what this version
// sends. Clients should pass over unknown members all the same.
package team

import (
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Types of messages from the client.
const (
	SendMessage    = "SEND_MESSAGE"
	StopGeneration = "STOP_GENERATION"
	ApproveTool    = "APPROVE_TOOL"
	DenyTool       = "DENY_TOOL"
	Pause          = "PAUSE"  // not in the original protocol
	Resume         = "RESUME" // not in the original protocol
)

// Types of messages to the client.
const (
	Connected              = "CONNECTED"
	SegmentStart           = "SEGMENT_START"
	SegmentContent         = "SEGMENT_CONTENT"
	SegmentEnd             = "SEGMENT_END"
	AgentStatus            = "AGENT_STATUS"
	TeamStatus             = "TEAM_STATUS"
	ToolApprovalRequested  = "TOOL_APPROVAL_REQUESTED"
	ToolAutoExecuting      = "TOOL_AUTO_EXECUTING"
	ToolApproved           = "TOOL_APPROVED"
	ToolDenied             = "TOOL_DENIED"
	ToolExecutionStarted   = "TOOL_EXECUTION_STARTED"
	ToolExecutionSucceeded = "TOOL_EXECUTION_SUCCEEDED"
	ToolExecutionFailed    = "TOOL_EXECUTION_FAILED"
	ToolLog                = "TOOL_LOG"
	AssistantComplete      = "ASSISTANT_COMPLETE"
	TodoListUpdate         = "TODO_LIST_UPDATE"
	InterAgentMessage      = "INTER_AGENT_MESSAGE"
	TaskNotification       = "SYSTEM_TASK_NOTIFICATION"
	TaskPlanEvent          = "TASK_PLAN_EVENT"
	ArtifactPersisted      = "ARTIFACT_PERSISTED"
	ArtifactUpdated        = "ARTIFACT_UPDATED"
	MessageAccepted        = "MESSAGE_ACCEPTED" // not in the original protocol
	Error                  = "ERROR"
)

// AssistantChunk is a message of the original protocol that neither its server nor this one sends: segments carry
// texts.
const AssistantChunk = "ASSISTANT_CHUNK"

// Inbound lists the types of messages from the client.
var Inbound = []string{SendMessage, StopGeneration, ApproveTool, DenyTool, Pause, Resume}

// Outbound lists the types of messages to the client that are sent.
var Outbound = []string{
	Connected, SegmentStart, SegmentContent, SegmentEnd, AgentStatus, TeamStatus, ToolApprovalRequested, ToolAutoExecuting,
	ToolApproved, ToolDenied, ToolExecutionStarted, ToolExecutionSucceeded, ToolExecutionFailed, ToolLog, AssistantComplete,
	TodoListUpdate, InterAgentMessage, TaskNotification, TaskPlanEvent, ArtifactPersisted, ArtifactUpdated, MessageAccepted, Error,
}

// Types of segments.
const (
	SegmentText      = "text"
	SegmentToolCall  = "tool_call"
	SegmentWriteFile = "write_file"
	SegmentEditFile  = "edit_file"
	SegmentRunBash   = "run_bash"
	SegmentReasoning = "reasoning"
	SegmentMedia     = "media" // never sent
)

// Scopes of a message.
const (
	MemberScoped = "member_scoped"
	TeamScoped   = "team_scoped"
)

// Kinds of events of a plan or board.
const (
	TasksCreated      = "TASKS_CREATED"
	TaskStatusUpdated = "TASK_STATUS_UPDATED"
)

// Fixed values of all stream envelopes: a run has one version, and all messages come from the log that the socket
// shows.
const (
	RunVersion  = 1
	OriginLocal = "local"
)

// Frame is a message to the client in the flattened form.
type Frame struct {
	Type    string `json:"type"`
	Payload any    `json:"payload"`
}

// Encode returns a message as JSON on one line, without the escapes for HTML that
// encoding/json adds by default. It fails only if a raw member is not JSON.
func Encode(v any) ([]byte, error) {
	b, err := plainjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode message of a team: %w", err)
	}
	return b, nil
}

// timestampLayout is RFC 3339 in UTC with exactly three digits of milliseconds.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// Timestamp is a time on the wire: RFC 3339, UTC, milliseconds.
type Timestamp struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, len(timestampLayout)+2)
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, timestampLayout)
	return append(b, '"'), nil
}

// UnmarshalJSON implements json.Unmarshaler. It reads any RFC 3339 time.
func (t *Timestamp) UnmarshalJSON(b []byte) error { return t.Time.UnmarshalJSON(b) }
