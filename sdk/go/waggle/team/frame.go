package team

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// Frame is one message of a team's socket.
type Frame struct {
	Type    string  `json:"type"`
	Payload Payload `json:"payload"`
	Raw     []byte  `json:"-"`
}

// Payload is what any frame may say. Each type has a part of it.
type Payload struct {
	// Where it comes from.
	AgentName string   `json:"agent_name"`
	AgentID   string   `json:"agent_id"`
	Route     string   `json:"member_route_key"`
	Node      string   `json:"sub_team_node_name"`
	Scope     string   `json:"event_scope"`
	Envelope  Envelope `json:"team_stream_event_envelope"`

	// MESSAGE_ACCEPTED, and texts: whose they are.
	MessageID string `json:"message_id"`

	// CONNECTED
	TeamID string `json:"team_id"`

	// Statuses.
	NewStatus    string `json:"new_status"`
	ErrorMessage string `json:"error_message"`

	// Texts.
	ID          string               `json:"id"`
	SegmentType string               `json:"segment_type"`
	Delta       string               `json:"delta"`
	Content     string               `json:"content"`
	Metadata    wire.SegmentMetadata `json:"metadata"`

	// Tools.
	InvocationID string          `json:"invocation_id"`
	ToolName     string          `json:"tool_name"`
	Arguments    json.RawMessage `json:"arguments"`
	Result       json.RawMessage `json:"result"`
	Reason       string          `json:"reason"`
	Error        string          `json:"error"`
	Token        json.RawMessage `json:"approval_token"`

	// Messages among members.
	SenderAgentID   string `json:"sender_agent_id"`
	SenderAgentName string `json:"sender_agent_name"`

	// The board, lists, files and errors.
	EventType string            `json:"event_type"`
	Tasks     []event.BoardTask `json:"tasks"`
	TaskID    string            `json:"task_id"`
	Todos     []event.Todo      `json:"todos"`
	Path      string            `json:"path"`
	Code      string            `json:"code"`
	Message   string            `json:"message"`
}

// Envelope says where a frame stands in the team's log.
type Envelope struct {
	Sequence uint64 `json:"sequence"` // 0 = in no log
}

// Parse reads a frame. It ignores unknown members.
func Parse(raw []byte) (Frame, error) {
	var f Frame
	if err := json.Unmarshal(raw, &f); err != nil {
		return Frame{}, err
	}
	f.Raw = raw
	return f, nil
}

// Path returns the path of the member that the frame is of; empty = the team itself.
func (f Frame) Path() string {
	p := f.Payload
	switch {
	case p.Route != "":
		return p.Route
	case p.Scope == wire.TeamScoped, f.Type == wire.TeamStatus, f.Type == wire.TaskPlanEvent:
		return p.Node
	case p.AgentName != "" && p.Node != "":
		return p.Node + "/" + p.AgentName
	}
	return p.AgentName
}

// Error is the server's fault for a frame of the client, or a failure in the team.
type Error struct {
	Code    string // of the error catalogue, such as MEMBER_NOT_FOUND
	Message string // for people
}

// Error returns the message and the code.
func (e *Error) Error() string {
	if e.Code == "" {
		return e.Message
	}
	return e.Message + " [" + e.Code + "]"
}

// Err returns the error that the frame reports.
func (f Frame) Err() *Error { return &Error{Code: f.Payload.Code, Message: f.Payload.Message} }
