package event

import (
	"encoding/json"
	"time"
)

// Origin names the event of another log that an event repeats. The target log records its position in the other log,
// so that each event is copied once.
type Origin struct {
	Log string `json:"origin_log,omitempty"` // tenant.kind.id
	Seq uint64 `json:"origin_seq,omitempty"`
}

// Ends of a task.
const (
	TaskEndCompleted = "completed"
	TaskEndFailed    = "failed"
	TaskEndCancelled = "cancelled"
)

// InboxCreatedData opens the log of a client: all messages to it, in order.
type InboxCreatedData struct {
	ClientID    string `json:"client_id"`
	Principal   string `json:"principal,omitempty"`
	TokenSHA256 string `json:"token_sha256"` // hex; a client that shows the token owns the inbox
}

// InboxRegisteredData is a client's description of itself.
type InboxRegisteredData struct {
	ClientID     string          `json:"client_id"`
	Name         string          `json:"name,omitempty"`
	ClientType   string          `json:"client_type,omitempty"`
	Version      string          `json:"version,omitempty"`
	Capabilities []string        `json:"capabilities,omitempty"`
	Extra        json.RawMessage `json:"extra,omitempty"`
}

// InboxMessagedData is a message from one client to another.
type InboxMessagedData struct {
	MessageID   string          `json:"message_id"`
	SenderID    string          `json:"sender_id"`
	SenderName  string          `json:"sender_name,omitempty"`
	TargetID    string          `json:"target_id"`
	MessageType string          `json:"message_type,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
	ExpiresAt   time.Time       `json:"expires_at"` // not delivered afterwards
}

// TaskHead is repeated in every event about a swarm task, so that a single event is understandable.
type TaskHead struct {
	TaskID    string `json:"task_id"`
	RequestID string `json:"request_id,omitempty"` // of the frame that created the task: the creator's call settles on it
	ClientID  string `json:"client_id,omitempty"`  // the client that owns it; empty for work of a session's pipeline
	ParentID  string `json:"parent_id,omitempty"`  // the task whose agent asked for it
	AgentID   string `json:"agent_id,omitempty"`   // its agent, now or last
	AgentName string `json:"agent_name,omitempty"`
	Attempt   int    `json:"attempt"` // 0 = not assigned yet
}

// TaskCreatedData records that a task was accepted.
type TaskCreatedData struct {
	TaskHead
	WantedID     string          `json:"wanted_id,omitempty"`    // the requested agent, by id
	WantedName   string          `json:"wanted_name,omitempty"`  // or by name
	Capabilities []string        `json:"capabilities,omitempty"` // or by its capabilities
	ExpectedID   string          `json:"expected_id,omitempty"`  // the most likely agent
	ExpectedName string          `json:"expected_name,omitempty"`
	TaskType     string          `json:"task_type,omitempty"`
	Data         json.RawMessage `json:"data"`
	DataRef      *ObjectRef      `json:"data_ref,omitempty"` // instead of data: the object that holds it
	Caller       json.RawMessage `json:"caller,omitempty"`   // id and name of the agent that asked for a child task
	AskerID      string          `json:"asker_id,omitempty"` // the agent that asked for it outside of any task: it is told of the end
	Depth        int             `json:"depth"`              // 0 = not a child
	RootID       string          `json:"root_id,omitempty"`  // the outermost task above a child
	Chain        []string        `json:"chain,omitempty"`    // names of the agents above it, outermost first
	QueueMS      int64           `json:"queue_ms"`           // how long it may wait for an agent
	TimeoutMS    int64           `json:"timeout_ms,omitempty"`
	Session      string          `json:"session,omitempty"` // the log whose job it is
	Kind         string          `json:"kind,omitempty"`    // of that log; absent = session
	JobID        string          `json:"job_id,omitempty"`  // and the job there
	RunID        string          `json:"run_id,omitempty"`
	Principal    string          `json:"principal,omitempty"` // its owner: the one that asked for it, or that of the log whose job it is
	RetryOf      string          `json:"retry_of,omitempty"`  // the task that ended, and that this one repeats
}

// IsJob reports whether the task is a job of another log.
func (d TaskCreatedData) IsJob() bool { return d.Session != "" && d.RunID != "" }

// TaskQueuedData records that the task waits for an agent.
type TaskQueuedData struct {
	TaskHead
	Reason string `json:"reason"` // offline, busy, released
}

// TaskAssignedData assigns the task to one agent. Attempt is the fence: reports of an earlier one are refused.
type TaskAssignedData struct {
	TaskHead
	TaskType string          `json:"task_type,omitempty"`
	Data     json.RawMessage `json:"data"`
	DataRef  *ObjectRef      `json:"data_ref,omitempty"` // instead of data: the object that holds it
	Caller   json.RawMessage `json:"caller,omitempty"`   // id and name of the agent that asked for a child task
	Deadline time.Time       `json:"deadline,omitzero"`

	Registered bool   `json:"registered,omitempty"` // by a principal; absent: the built-in agent
	Owner      string `json:"owner,omitempty"`      // of the task
}

// TaskReportedData is a status from the agent.
type TaskReportedData struct {
	TaskHead
	Status   string          `json:"status"` // started, running, completed, failed, or the agent's own word
	Progress json.RawMessage `json:"progress,omitempty"`

	Connection string `json:"connection,omitempty"` // of the agent that reported it; delivered: the one that got the task
}

// TaskNotifiedData is an agent's message to the client during a task.
type TaskNotifiedData struct {
	TaskHead
	NotificationType string          `json:"notification_type"` // progress, info, warning, error, debug, step, status
	Level            string          `json:"level,omitempty"`
	Message          json.RawMessage `json:"message"`
	MessageRef       *ObjectRef      `json:"message_ref,omitempty"` // instead of message: the object that holds it
	Data             json.RawMessage `json:"data,omitempty"`
	DataRef          *ObjectRef      `json:"data_ref,omitempty"`   // instead of data: the object that holds it
	Connection       string          `json:"connection,omitempty"` // of the reporting agent
}

// TaskMessagedData is a client's message to the agent during a task.
type TaskMessagedData struct {
	TaskHead
	MessageID   string          `json:"message_id"`
	MessageType string          `json:"message_type,omitempty"`
	Message     json.RawMessage `json:"message"`
	MessageRef  *ObjectRef      `json:"message_ref,omitempty"` // instead of message: the object that holds it
	From        string          `json:"from"`                  // client id
	InputID     string          `json:"input_id,omitempty"`    // the question that it answers
	By          string          `json:"by,omitempty"`          // the principal that answers, if it is not a client of the swarm

	Given *GivenAnswer `json:"given,omitempty"` // of an answer to the question that another log shows: how it was given there
}

// GivenAnswer is how an answer to an agent was given in the log of the job that its task is.
type GivenAnswer struct {
	InputID  string `json:"input_id"` // of the question there
	Decision string `json:"decision"` // approve, reject, answer
	Feedback string `json:"feedback,omitempty"`
	ClientID string `json:"client_id,omitempty"`
	Segment  string `json:"segment,omitempty"` // as in input.answered
}

// TaskReleasedData takes the task from an agent that has gone.
type TaskReleasedData struct {
	TaskHead
	Reason string `json:"reason"` // agent_lost, agent_left, not_delivered, forgotten, silent
}

// TaskDeletedData records that the task's session was deleted. It is the last event of the log: the service removes
// the earlier ones, and nothing follows it.
type TaskDeletedData struct {
	Reason string `json:"reason"` // session_deleted
}

// TaskRefusedData records that an agent reported on a task that it does not have, or not any more.
type TaskRefusedData struct {
	TaskHead
	By   string `json:"by"`   // the agent that was refused
	What string `json:"what"` // result, error, status
	Code string `json:"code"` // TASK_NOT_OWNED, TASK_FINISHED
}

// TaskAskedData is a question of the agent to the client. It takes one answer.
type TaskAskedData struct {
	TaskHead
	InputID     string          `json:"input_id"`
	MessageType string          `json:"message_type,omitempty"`
	Message     json.RawMessage `json:"message"`
	MessageRef  *ObjectRef      `json:"message_ref,omitempty"` // instead of message: the object that holds it
	Options     json.RawMessage `json:"options,omitempty"`
	TimeoutMS   int64           `json:"timeout_ms"`
	Connection  string          `json:"connection,omitempty"` // of the asking agent
}

// TaskAskExpiredData records that the question's time passed without an answer. The task continues.
type TaskAskExpiredData struct {
	TaskHead
	InputID string `json:"input_id"`
}

// TaskFinishedData is the only end of a task.
type TaskFinishedData struct {
	TaskHead
	Status    string          `json:"status"` // completed, failed, cancelled
	Result    json.RawMessage `json:"result,omitempty"`
	ResultRef *ObjectRef      `json:"result_ref,omitempty"` // instead of result: the object that holds it
	Code      string          `json:"code,omitempty"`
	Error     string          `json:"error,omitempty"`
	Details   json.RawMessage `json:"details,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
}

// ChildCreatedData records a task that the parent's agent asked for, in the parent's log.
type ChildCreatedData struct {
	TaskHead
	ChildID        string `json:"child_id"`
	ChildRequestID string `json:"child_request_id,omitempty"` // of the agent's frame
	ChildAgentID   string `json:"child_agent_id,omitempty"`
	ChildAgentName string `json:"child_agent_name,omitempty"`
	TaskType       string `json:"task_type,omitempty"`
	Description    string `json:"description,omitempty"`
	Connection     string `json:"connection,omitempty"` // of the asking agent
}

// ChildFinishedData records a child's end in the parent's log.
type ChildFinishedData struct {
	TaskHead
	ChildID   string          `json:"child_id"`
	Status    string          `json:"status"`
	Result    json.RawMessage `json:"result,omitempty"`
	ResultRef *ObjectRef      `json:"result_ref,omitempty"` // instead of result: the object that holds it
	Code      string          `json:"code,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// CallStartedData is the intent of a tool call that an agent asks for within a task.
type CallStartedData struct {
	TaskHead
	CallID       string          `json:"call_id"`
	CallRequest  string          `json:"call_request,omitempty"` // id of the agent's frame
	Kind         string          `json:"kind"`                   // service, mcp
	Server       string          `json:"server"`                 // id of the service or MCP server
	ServerName   string          `json:"server_name,omitempty"`
	Tool         string          `json:"tool"`
	Arguments    json.RawMessage `json:"arguments"`
	ArgumentsRef *ObjectRef      `json:"arguments_ref,omitempty"` // instead of arguments: the object that holds them
	Idempotent   bool            `json:"idempotent"`
	TimeoutMS    int64           `json:"timeout_ms,omitempty"`
	Connection   string          `json:"connection,omitempty"` // of the asking agent
	Principal    string          `json:"principal,omitempty"`  // that asked for a call outside of tasks
}

// CallNotifiedData is a notification of a service during a call.
type CallNotifiedData struct {
	TaskHead
	CallID           string          `json:"call_id"`
	Server           string          `json:"server"`
	ServerName       string          `json:"server_name,omitempty"`
	NotificationType string          `json:"notification_type"`
	Message          string          `json:"message,omitempty"`
	Data             json.RawMessage `json:"data,omitempty"`
	At               time.Time       `json:"at"`
}

// CallFinishedData is the outcome of a tool call.
type CallFinishedData struct {
	TaskHead
	CallID      string          `json:"call_id"`
	CallRequest string          `json:"call_request,omitempty"`
	Kind        string          `json:"kind"`
	Server      string          `json:"server"`
	ServerName  string          `json:"server_name,omitempty"`
	Tool        string          `json:"tool"`
	Status      string          `json:"status"` // success, error, unknown
	Result      json.RawMessage `json:"result,omitempty"`
	ResultRef   *ObjectRef      `json:"result_ref,omitempty"` // instead of result: the object that holds it
	Code        string          `json:"code,omitempty"`
	Error       string          `json:"error,omitempty"`
	Field       string          `json:"field,omitempty"`   // JSON pointer of the argument that does not fit
	Details     json.RawMessage `json:"details,omitempty"` // of a failed service, in its own form: at least its code, if it has one
	DurationMS  int64           `json:"duration_ms"`
}

// CallRequestedData is a direct message: it delivers a call to one replica of a service.
type CallRequestedData struct {
	CallID    string          `json:"call_id"`
	ServiceID string          `json:"service_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	TaskID    string          `json:"task_id,omitempty"`
	AgentID   string          `json:"agent_id,omitempty"`
	ClientID  string          `json:"client_id,omitempty"`
	Priority  string          `json:"priority,omitempty"`
	Deadline  time.Time       `json:"deadline,omitzero"`
	Inbox     string          `json:"inbox"` // subject of the caller, for notifications and the outcome
}
