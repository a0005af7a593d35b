// Package orbit holds the wire types of the ORBIT chat protocol: one Go type, one
// JSON Schema and at least one example for every message type.
//
// The schemas are normative. Inbound schemas allow members that they do not name,
// because a server passes over what it does not know; outbound schemas do not,
// because they say exactly what this version sends. Clients should pass over
// unknown members all the same.
package orbit

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Types of messages from the client.
const (
	UserMessage = "user_message"
	Cancel      = "cancel" // not in the original protocol
	Answer      = "answer" // not in the original protocol
)

// Types of messages to the client.
const (
	AgentStart     = "agent_start"
	AgentReady     = "agent_ready"
	UserInput      = "user_input"
	AgentThinking  = "agent_thinking"
	ToolCalled     = "tool_called"
	ToolExecuting  = "tool_executing"
	ToolResult     = "tool_result"
	AgentResponse  = "agent_response"
	Error          = "error"
	AgentDelta     = "agent_delta"           // not in the original protocol; only on request
	DeltaDiscarded = "agent_delta_discarded" // not in the original protocol; only on request
)

// Inbound lists the types of messages from the client.
var Inbound = []string{UserMessage, Cancel, Answer}

// Outbound lists the types of messages to the client.
var Outbound = []string{
	AgentStart, AgentReady, UserInput, AgentThinking, ToolCalled, ToolExecuting,
	ToolResult, AgentResponse, Error, AgentDelta, DeltaDiscarded,
}

// Frame is a message to the client. Use Frame[json.RawMessage] to read one before
// its type is known.
//
// Seq is the position of the event that the frame reports in its session; frames
// that report no event have none. ExecutionID is nil where the member is absent. Agent
// is the member of a team that the frame is of, as a path of names from the team that
// is watched; it is empty for what belongs to the log itself.
type Frame[D any] struct {
	Type        string       `json:"type"`
	Seq         uint64       `json:"seq,omitempty"`
	Timestamp   Timestamp    `json:"timestamp"`
	ExecutionID *ExecutionID `json:"execution_id,omitempty"`
	Agent       string       `json:"agent,omitempty"` // not in the original protocol
	Data        D            `json:"data"`
}

// Encode returns the frame as JSON on one line, without the escapes for HTML that
// encoding/json adds by default. It fails only if a raw member is not JSON.
func (f Frame[D]) Encode() ([]byte, error) {
	b, err := plainjson.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s frame: %w", f.Type, err)
	}
	return b, nil
}

// ExecutionID names a run on the wire: exec_YYYYMMDD_HHMMSS_ffffff, UTC. The empty
// id is written as null.
type ExecutionID string

// MarshalJSON implements json.Marshaler.
func (e ExecutionID) MarshalJSON() ([]byte, error) {
	if e == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(e))
}

// timestampLayout is ISO 8601 in UTC with exactly three digits of milliseconds.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// Timestamp is a time on the wire: ISO 8601, UTC, milliseconds.
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
