package team

import "encoding/json"

// Where is the place of a message of the flattened form. All payloads but that of CONNECTED have its members. A
// payload's own members win.
type Where struct {
	AgentName       string          `json:"agent_name,omitempty"`                 // of the member, in its own team
	AgentID         string          `json:"agent_id,omitempty"`                   // of the member
	SubTeamNodeName string          `json:"sub_team_node_name,omitempty"`         // of the nested team in the team that the socket shows
	MemberRouteKey  string          `json:"member_route_key,omitempty"`           // path of member names from the team that the socket shows: backend_team/Coder
	EventScope      string          `json:"event_scope,omitempty"`                // member_scoped, team_scoped
	Stream          *StreamEnvelope `json:"team_stream_event_envelope,omitempty"` // absent on what is in no log
}

// Put sets the place of the message.
func (w *Where) Put(at Where) { *w = at }

// StreamEnvelope is the position of a message in what the socket shows.
type StreamEnvelope struct {
	TeamRunID    string    `json:"team_run_id"` // id of the log that the socket shows
	RunVersion   int       `json:"run_version"`
	Sequence     uint64    `json:"sequence"` // grows from message to message, not always by one; come back with ?after=
	SourceNodeID string    `json:"source_node_id"`
	Origin       string    `json:"origin"`
	EventType    string    `json:"event_type"` // <source type>:<type>
	ReceivedAt   Timestamp `json:"received_at"`
}

// ConnectedPayload greets a socket: it has a team's id, or an agent's.
type ConnectedPayload struct {
	TeamID    string `json:"team_id,omitempty"`
	AgentID   string `json:"agent_id,omitempty"`
	SessionID string `json:"session_id"` // of the socket
}

// SegmentMetadata describes a segment.
type SegmentMetadata struct {
	ToolName  string          `json:"tool_name,omitempty"`
	Path      string          `json:"path,omitempty"`       // of the file, of segments write_file and edit_file
	Arguments json.RawMessage `json:"arguments,omitempty"`  // of the call, at the end of its segment
	MediaType string          `json:"media_type,omitempty"` // image, audio, video
	URLs      []string        `json:"urls,omitempty"`       // of the media
	Discarded bool            `json:"discarded,omitempty"`  // the text so far does not count
	Reason    string          `json:"reason,omitempty"`     // why
}

// SegmentStartPayload opens a segment.
type SegmentStartPayload struct {
	ID          string           `json:"id"` // of a tool's segment the invocation_id
	SegmentType string           `json:"segment_type"`
	Metadata    *SegmentMetadata `json:"metadata,omitempty"`
	Where
}

// SegmentContentPayload is the next piece of a segment.
type SegmentContentPayload struct {
	ID          string `json:"id"`
	SegmentType string `json:"segment_type"`
	Delta       string `json:"delta"` // of a tool_call the JSON of its arguments, of a file its text, of run_bash the command
	Where
}

// SegmentEndPayload closes a segment.
type SegmentEndPayload struct {
	ID          string           `json:"id"`
	SegmentType string           `json:"segment_type"`
	Metadata    *SegmentMetadata `json:"metadata,omitempty"`
	Where
}

// AgentStatusPayload is the new status of an agent.
type AgentStatusPayload struct {
	NewStatus     string  `json:"new_status"`
	OldStatus     *string `json:"old_status"`                // null: not known
	Trigger       string  `json:"trigger,omitempty"`         // type of the event that changed it
	ToolName      string  `json:"tool_name,omitempty"`       // of executing_tool, awaiting_tool_approval and processing_tool_result
	DenialForTool string  `json:"denial_for_tool,omitempty"` // of tool_denied: the tool
	ErrorMessage  string  `json:"error_message,omitempty"`
	ErrorDetails  string  `json:"error_details,omitempty"` // code of the error
	Where
}

// TeamStatusPayload is the new status of a team.
type TeamStatusPayload struct {
	NewStatus    string `json:"new_status"`
	OldStatus    string `json:"old_status,omitempty"`
	ErrorMessage string `json:"error_message,omitempty"`
	Where
}

// ApprovalToken binds an answer to one question. Clients return it unchanged.
type ApprovalToken struct {
	TeamRunID         string `json:"teamRunId"`
	RunVersion        int    `json:"runVersion"`
	InvocationID      string `json:"invocationId"`
	InvocationVersion int    `json:"invocationVersion"`
	TargetMemberName  string `json:"targetMemberName"` // its route
	Digest            string `json:"digest,omitempty"` // of the call: tool and arguments
}

// ApprovalPayload asks whether a tool call may run. The question about a plan names a tool called plan.
type ApprovalPayload struct {
	InvocationID  string          `json:"invocation_id"`
	ToolName      string          `json:"tool_name"`
	Arguments     json.RawMessage `json:"arguments"` // an object
	TurnID        string          `json:"turn_id"`   // of the run
	AgentID       string          `json:"agent_id"`
	ApprovalToken ApprovalToken   `json:"approval_token"`
	Where
}

// InvocationPayload is a tool call that runs without a question, or has begun.
type InvocationPayload struct {
	InvocationID string          `json:"invocation_id"`
	ToolName     string          `json:"tool_name"`
	TurnID       string          `json:"turn_id"`
	Arguments    json.RawMessage `json:"arguments"` // an object
	Where
}

// StartedPayload reports that the tool has the call.
type StartedPayload struct {
	InvocationID string          `json:"invocation_id"`
	ToolName     string          `json:"tool_name"`
	TurnID       string          `json:"turn_id"`
	Arguments    json.RawMessage `json:"arguments,omitempty"` // an object; absent in old logs: those of the segment
	Retry        bool            `json:"retry,omitempty"`     // it had it before, from a worker that died
	Where
}

// DecisionPayload is the one answer to a question.
type DecisionPayload struct {
	InvocationID string `json:"invocation_id"`
	ToolName     string `json:"tool_name"`
	TurnID       string `json:"turn_id"`
	Reason       string `json:"reason,omitempty"`
	Error        string `json:"error,omitempty"` // of a denial
	By           string `json:"by,omitempty"`    // the principal that answered
	Where
}

// SucceededPayload is the result of a tool call.
type SucceededPayload struct {
	InvocationID string          `json:"invocation_id"`
	ToolName     string          `json:"tool_name"`
	TurnID       string          `json:"turn_id"`
	Result       json.RawMessage `json:"result"` // any JSON
	DurationMS   int64           `json:"duration_ms"`
	Where
}

// FailedPayload is the end of a tool call without a result.
type FailedPayload struct {
	InvocationID string `json:"invocation_id"`
	ToolName     string `json:"tool_name"`
	TurnID       string `json:"turn_id"`
	Error        string `json:"error"`
	Code         string `json:"code,omitempty"`
	Where
}

// ToolLogPayload is a line of a tool call's log.
type ToolLogPayload struct {
	LogEntry         string `json:"log_entry"`
	ToolInvocationID string `json:"tool_invocation_id"`
	ToolName         string `json:"tool_name"`
	Where
}

// AssistantCompletePayload is a whole message of an agent.
type AssistantCompletePayload struct {
	Content    string   `json:"content"`
	Reasoning  string   `json:"reasoning,omitempty"`   // never sent: it has a segment
	MessageID  string   `json:"message_id,omitempty"`  // its segment's id
	StopReason string   `json:"stop_reason,omitempty"` // not in the original protocol: of a message that is not complete
	ImageURLs  []string `json:"image_urls"`
	AudioURLs  []string `json:"audio_urls"`
	VideoURLs  []string `json:"video_urls"`
	Where
}

// AssistantChunkPayload is a piece of a text. The server never sends it.
type AssistantChunkPayload struct {
	Content    string   `json:"content"`
	Reasoning  string   `json:"reasoning,omitempty"`
	IsComplete bool     `json:"is_complete"`
	ImageURLs  []string `json:"image_urls,omitempty"`
	AudioURLs  []string `json:"audio_urls,omitempty"`
	VideoURLs  []string `json:"video_urls,omitempty"`
	Where
}

// Todo is an item of a to-do list.
type Todo struct {
	TodoID      string `json:"todo_id"`
	Description string `json:"description"`
	Status      string `json:"status"` // pending, in_progress, done
}

// TodoListPayload is an agent's whole to-do list.
type TodoListPayload struct {
	Todos []Todo `json:"todos"`
	Where
}

// InterAgentPayload is a message from another agent, at its receiver.
type InterAgentPayload struct {
	SenderAgentID     string `json:"sender_agent_id"`
	SenderAgentName   string `json:"sender_agent_name,omitempty"`
	RecipientRoleName string `json:"recipient_role_name"`
	Content           string `json:"content"`
	MessageType       string `json:"message_type"`
	Where
}

// AcceptedPayload reports that the team has accepted a user's message: the following status of the team shows the
// outcome. Not in the original protocol.
type AcceptedPayload struct {
	MessageID        string `json:"message_id"`         // of the SEND_MESSAGE
	TargetMemberName string `json:"target_member_name"` // the recipient: a name, or a path
	Where
}

// NotificationPayload is a message from the system.
type NotificationPayload struct {
	SenderID string `json:"sender_id"`
	Content  string `json:"content"`
	Where
}

// Deliverable is a file that belongs to a task.
type Deliverable struct {
	FilePath        string `json:"file_path"`
	Summary         string `json:"summary"`
	AuthorAgentName string `json:"author_agent_name"`
	Timestamp       string `json:"timestamp,omitempty"`
}

// Task is a task of a plan or board.
type Task struct {
	ID               string        `json:"id"` // the same as task_id
	TaskID           string        `json:"task_id"`
	TaskName         string        `json:"task_name"`
	AssigneeName     string        `json:"assignee_name"`
	Description      string        `json:"description"`
	Dependencies     []string      `json:"dependencies"` // task ids
	FileDeliverables []Deliverable `json:"file_deliverables"`
	Status           string        `json:"status"` // not_started, queued, in_progress, completed, blocked, failed
}

// TaskPlanPayload is a whole plan or board (TASKS_CREATED), or the new status of one task (TASK_STATUS_UPDATED).
type TaskPlanPayload struct {
	EventType    string        `json:"event_type,omitempty"` // in the flattened form
	TeamID       string        `json:"team_id"`
	Tasks        []Task        `json:"tasks,omitempty"`        // TASKS_CREATED: all of them
	TaskID       string        `json:"task_id,omitempty"`      // TASK_STATUS_UPDATED
	NewStatus    string        `json:"new_status,omitempty"`   // TASK_STATUS_UPDATED
	AgentName    string        `json:"agent_name,omitempty"`   // TASK_STATUS_UPDATED: who says so
	Deliverables []Deliverable `json:"deliverables,omitempty"` // TASK_STATUS_UPDATED
	Where
}

// ArtifactPayload is a file that an agent has made or changed.
type ArtifactPayload struct {
	ArtifactID    string `json:"artifact_id"`
	Path          string `json:"path"`
	AgentID       string `json:"agent_id"`
	Type          string `json:"type"`
	WorkspaceRoot string `json:"workspace_root,omitempty"`
	URL           string `json:"url,omitempty"`
	Where
}

// ErrorPayload is a failure. All but code, message and details are not in the original
// protocol.
type ErrorPayload struct {
	Code       string `json:"code"` // from the error catalogue
	Message    string `json:"message"`
	Details    string `json:"details,omitempty"`
	Field      string `json:"field,omitempty"`       // the offending member of the client's message
	InputID    string `json:"input_id,omitempty"`    // the question that was answered before
	AnsweredBy string `json:"answered_by,omitempty"` // by whom
	Decision   string `json:"decision,omitempty"`    // and how
	FirstSeq   uint64 `json:"first_seq,omitempty"`   // history before this position has expired
	Where
}
