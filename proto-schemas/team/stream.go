package team

// Sources of the events of a team's stream.
const (
	SourceTeam     = "TEAM"
	SourceAgent    = "AGENT"
	SourceSubTeam  = "SUB_TEAM"
	SourceTaskPlan = "TASK_PLAN"
)

// SegmentEventType is the event_type of all segments in a StreamEvent.
const SegmentEventType = "segment_event"

// EventTypes holds the event_type of a StreamEvent by the type of the message.
var EventTypes = map[string]string{
	SegmentStart:           SegmentEventType,
	SegmentContent:         SegmentEventType,
	SegmentEnd:             SegmentEventType,
	AgentStatus:            "agent_status_updated",
	ToolApprovalRequested:  "tool_approval_requested",
	ToolAutoExecuting:      "tool_invocation_auto_executing",
	ToolApproved:           "tool_approved",
	ToolDenied:             "tool_denied",
	ToolExecutionStarted:   "tool_execution_started",
	ToolExecutionSucceeded: "tool_execution_succeeded",
	ToolExecutionFailed:    "tool_execution_failed",
	ToolLog:                "tool_interaction_log_entry",
	AssistantChunk:         "assistant_chunk",
	AssistantComplete:      "assistant_complete_response",
	TodoListUpdate:         "agent_todo_list_updated",
	InterAgentMessage:      "inter_agent_message",
	TaskNotification:       "system_task_notification",
	ArtifactPersisted:      "artifact_persisted",
	ArtifactUpdated:        "artifact_updated",
	MessageAccepted:        "message_accepted",
	Error:                  "error_event",
	TeamStatus:             "team_status_updated", // only where an agent's socket shows a team
	TaskPlanEvent:          "task_plan_updated",   // only where an agent's socket shows a plan or board
}

// Envelope is a message to the client in the envelope form: an AgentTeamStreamEvent.
type Envelope struct {
	EventID   string    `json:"event_id"`
	Timestamp Timestamp `json:"timestamp"`
	TeamID    string    `json:"team_id"`
	Source    string    `json:"event_source_type"`
	Data      any       `json:"data"`
	Sequence  uint64    `json:"sequence,omitempty"` // position in the team's stream; absent on what is in no log
}

// AgentEventData is the data of an event of source AGENT.
type AgentEventData struct {
	AgentName  string      `json:"agent_name"`
	AgentEvent StreamEvent `json:"agent_event"`
	OldStatus  string      `json:"old_status,omitempty"` // the agent's status before an agent_status_updated
}

// SubTeamEventData is the data of an event of source SUB_TEAM.
type SubTeamEventData struct {
	SubTeamNodeName string   `json:"sub_team_node_name"`
	SubTeamEvent    Envelope `json:"sub_team_event"`
}

// StreamEvent is an event of an agent's stream: what sockets of an agent are sent in
// the envelope form, and what an event of source AGENT holds. Both are the same bytes.
type StreamEvent struct {
	EventID   string    `json:"event_id"`
	Timestamp Timestamp `json:"timestamp"`
	AgentID   string    `json:"agent_id"`
	EventType string    `json:"event_type"`
	Data      any       `json:"data"`
	Sequence  uint64    `json:"sequence,omitempty"` // position in the agent's stream; absent on what is in no log
}

// SegmentEvent is the data of a StreamEvent of type segment_event.
type SegmentEvent struct {
	Type        string      `json:"type"` // SEGMENT_START, SEGMENT_CONTENT, SEGMENT_END
	SegmentID   string      `json:"segment_id"`
	SegmentType string      `json:"segment_type"`
	Payload     SegmentData `json:"payload"`
}

// SegmentData is the new part of a segment.
type SegmentData struct {
	Delta    *string          `json:"delta,omitempty"` // SEGMENT_CONTENT
	Metadata *SegmentMetadata `json:"metadata,omitempty"`
}
