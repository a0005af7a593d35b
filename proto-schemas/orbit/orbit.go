// Package orbit holds the wire types of the ORBIT chat protocol: one Go type, one
// JSON Schema and at least one example for every message type.
//
// The schemas are normative. Inbound schemas allow members that they do not name,
// because a server passes over what it does not know; outbound schemas do not,
// because they say exactly what this version sends. Clients should pass over
// unknown members all the same.
package orbit

import (
	"fmt"
	"strconv"
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
	ThinkingDelta  = "agent_thinking_delta"  // not in the original protocol; only on request
	DeltaDiscarded = "agent_delta_discarded" // not in the original protocol; only on request
)

// Inbound lists the types of messages from the client.
var Inbound = []string{UserMessage, Cancel, Answer}

// Outbound lists the types of messages to the client.
var Outbound = []string{
	AgentStart, AgentReady, UserInput, AgentThinking, ToolCalled, ToolExecuting,
	ToolResult, AgentResponse, Error, AgentDelta, ThinkingDelta, DeltaDiscarded,
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
	b := make([]byte, 0, frameRoom)
	b = plainjson.AppendString(append(b, `{"type":`...), f.Type)
	if f.Seq > 0 {
		b = strconv.AppendUint(append(b, `,"seq":`...), f.Seq, 10)
	}
	b = f.Timestamp.append(append(b, `,"timestamp":`...))
	if f.ExecutionID != nil {
		b = f.ExecutionID.append(append(b, `,"execution_id":`...))
	}
	if f.Agent != "" {
		b = plainjson.AppendString(append(b, `,"agent":`...), f.Agent)
	}
	b, err := plainjson.Append(append(b, `,"data":`...), f.Data)
	if err != nil {
		return nil, fmt.Errorf("encode %s frame: %w", f.Type, err)
	}
	return append(b, '}'), nil
}

// frameRoom is the memory that most frames need.
const frameRoom = 384

// ExecutionID names a run on the wire: exec_YYYYMMDD_HHMMSS_ffffff, UTC. The empty
// id is written as null.
type ExecutionID string

// MarshalJSON implements json.Marshaler.
func (e ExecutionID) MarshalJSON() ([]byte, error) {
	return e.append(nil), nil
}

func (e ExecutionID) append(b []byte) []byte {
	if e == "" {
		return append(b, "null"...)
	}
	return plainjson.AppendString(b, string(e))
}

// timestampLayout is ISO 8601 in UTC with exactly three digits of milliseconds.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// Timestamp is a time on the wire: ISO 8601, UTC, milliseconds.
type Timestamp struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	return t.append(make([]byte, 0, len(timestampLayout)+2)), nil
}

func (t Timestamp) append(b []byte) []byte {
	b = t.UTC().AppendFormat(append(b, '"'), timestampLayout)
	return append(b, '"')
}

// UnmarshalJSON implements json.Unmarshaler. It reads any RFC 3339 time.
func (t *Timestamp) UnmarshalJSON(b []byte) error { return t.Time.UnmarshalJSON(b) }
