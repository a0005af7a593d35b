package command

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Task is the service of swarm tasks: registry, routing, life cycle.
var Task = id.MustName("task")

// Verbs of the task service that are about one task. Commands of one task are handled in order.
var (
	CreateTask   = id.MustName("create")        // data: NewTask
	MessageTask  = id.MustName("message-task")  // data: TaskMessage; the client tells the agent
	CancelSwarm  = id.MustName("cancel")        // data: CancelTaskData
	ReportTask   = id.MustName("report")        // data: TaskReport; the agent's status
	NotifyTask   = id.MustName("notify")        // data: TaskNotification
	AskTask      = id.MustName("ask")           // data: TaskQuestion
	ResultTask   = id.MustName("result")        // data: TaskResult; the agent's result or error
	ReleaseTask  = id.MustName("release")       // data: AgentGone
	SpawnTask    = id.MustName("spawn")         // data: SpawnChild; the agent asks another agent
	ChildEnded   = id.MustName("child-ended")   // data: event.ChildFinishedData
	CallTool     = id.MustName("call")          // data: ToolRequest; the agent calls a tool within the task
	CallNotified = id.MustName("call-notified") // data: event.CallNotifiedData
	CallEnded    = id.MustName("call-ended")    // data: event.CallFinishedData
	TaskDue      = id.MustName("task-due")      // no data; a deadline of the task has passed
)

// Verbs of the task service about one client: its key is the client's id.
var (
	TellClient = id.MustName("tell-client") // data: event.ClientMessageData
	AckClient  = id.MustName("ack-client")  // data: AckEvents; how far the client has its inbox. The highest counts
)

// Verbs of the task service that are asked for by request and reply.
var (
	OpenClient   = id.MustName("open-client")   // OpenClientRequest -> OpenClientReply
	NameClient   = id.MustName("name-client")   // PeerRequest{Data: event.ClientRegisteredData} -> ClientEntry
	ListAgents   = id.MustName("list-agents")   // PeerRequest{Data: PeerFilter} -> PeerList
	ListServices = id.MustName("list-services") // PeerRequest{Data: PeerFilter} -> PeerList
	ListClients  = id.MustName("list-clients")  // PeerRequest{Data: PeerFilter} -> PeerList
	ListServers  = id.MustName("list-servers")  // PeerRequest{Data: PeerFilter} -> PeerList; MCP servers
	ListTools    = id.MustName("list-tools")    // PeerRequest{Data: ToolsOf} -> ToolList; of a service or an MCP server
	RunTool      = id.MustName("run-tool")      // PeerRequest{Data: ToolRequest} -> ToolOutcome; outside of a task
	ShowTask     = id.MustName("show-task")     // PeerRequest{Data: TaskRefData} -> TaskView
	SendClient   = id.MustName("send-client")   // PeerRequest{Data: ClientNote} -> ClientNote
	Submit       = id.MustName("submit")        // PeerRequest{Data: NewTask} -> TaskView; checks the agent, then sends CreateTask
)

// Kinds of peers.
const (
	PeerClient  = "client"
	PeerAgent   = "agent"
	PeerService = "service"
)

// Statuses of peers.
const (
	StatusActive      = "active"
	StatusInactive    = "inactive"
	StatusBusy        = "busy"
	StatusError       = "error"
	StatusMaintenance = "maintenance"
)

// What peers are in the directory. While one with an id comes back there can be
// several entries of it: the one that is online counts, of two the younger (Since).
var (
	WhatAgent   = id.MustName("agent")
	WhatService = id.MustName("asp-service")
	WhatClient  = id.MustName("client")
)

// PeerWhat returns what peers of the kind are in the directory.
func PeerWhat(kind string) id.Name {
	switch kind {
	case PeerAgent:
		return WhatAgent
	case PeerService:
		return WhatService
	}
	return WhatClient
}

// Peer is a connected client, agent or service of the swarm, as its gateway knows
// it: the data of its entry in the directory.
type Peer struct {
	Kind         string          `json:"kind"`
	Tenant       id.Tenant       `json:"tenant,omitzero"` // absent = all: the built-in agent
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Capabilities []string        `json:"capabilities,omitempty"`
	Description  string          `json:"description,omitempty"`
	Status       string          `json:"status"`
	Tools        []PeerTool      `json:"tools,omitempty"` // of a service
	Extra        json.RawMessage `json:"extra,omitempty"` // manifest, type, version: what else it said, an object
	Principal    string          `json:"principal,omitempty"`
	Gateway      string          `json:"gateway,omitempty"` // instance
	Connection   string          `json:"connection,omitempty"`
	Online       bool            `json:"online"`
	Since        time.Time       `json:"since"`
	Load         int             `json:"load"`            // tasks or calls that its gateway has handed to it
	Knows        bool            `json:"knows,omitempty"` // an agent has said which tasks of earlier connections it still has:
	Holds        []string        `json:"holds,omitempty"` // these
}

// PeerTool is a tool that a service offers.
type PeerTool struct {
	ID           string          `json:"id"`
	Name         string          `json:"name,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Idempotent   bool            `json:"idempotent,omitempty"`
}

// PeerRequest is what a gateway asks for a connection.
type PeerRequest struct {
	Tenant    id.Tenant       `json:"tenant"`
	Principal string          `json:"principal,omitempty"`
	Kind      string          `json:"kind"`           // of who asks
	ID        string          `json:"id"`             // of who asks
	Name      string          `json:"name,omitempty"` // of who asks
	ReplyTo   string          `json:"reply_to"`       // its connection
	RequestID string          `json:"request_id,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// OpenClientRequest opens the inbox of a client, or comes back to it.
type OpenClientRequest struct {
	Tenant    id.Tenant `json:"tenant"`
	Principal string    `json:"principal,omitempty"`
	ClientID  string    `json:"client_id,omitempty"` // to come back, with Token
	Token     string    `json:"token,omitempty"`
	After     *uint64   `json:"after,omitempty"` // the highest seq that it has; absent: what its gateway last stored
}

// OpenClientReply says which inbox it is and where to begin.
type OpenClientReply struct {
	ClientID string `json:"client_id"`
	Token    string `json:"token,omitempty"` // shown once, when the inbox is made
	After    string `json:"after"`           // cursor
	Resumed  bool   `json:"resumed"`
}

// PeerFilter narrows a list. Every member that is given has to hold.
type PeerFilter struct {
	Status       string   `json:"status,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"` // all of them
	Name         string   `json:"name,omitempty"`         // part of it, whatever the case
	Type         string   `json:"type,omitempty"`
}

// PeerList is the answer to a list.
type PeerList struct {
	Peers []Peer `json:"peers"`
}

// ToolsOf names a service or an MCP server.
type ToolsOf struct {
	Kind   string `json:"kind"` // service, mcp
	Server string `json:"server"`
}

// ToolList is what a service or an MCP server offers.
type ToolList struct {
	Server string     `json:"server"`
	Name   string     `json:"name"`
	Tools  []PeerTool `json:"tools"`
}

// ToolRequest asks for one run of a tool.
type ToolRequest struct {
	TaskID    string          `json:"task_id,omitempty"` // within this task; empty: found by who asks, or none
	AgentID   string          `json:"agent_id,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	Kind      string          `json:"kind"` // service, mcp
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	TimeoutMS int64           `json:"timeout_ms,omitempty"`
	Priority  string          `json:"priority,omitempty"`
}

// ToolOutcome is what became of it.
type ToolOutcome struct {
	ToolRequest
	ServerName string          `json:"server_name,omitempty"`
	Status     string          `json:"status"` // success, error
	Result     json.RawMessage `json:"result,omitempty"`
	Code       string          `json:"code,omitempty"`
	Error      string          `json:"error,omitempty"`
	DurationMS int64           `json:"duration_ms"`
}

// CallNews is what a gateway says to the inbox of a call (event.CallRequestedData):
// what the service tells on the way, and once, with Final, how it ended. A notification
// may follow the end.
type CallNews struct {
	CallID       string                  `json:"call_id"`
	ServiceID    string                  `json:"service_id"` // who says so, as its gateway knows it
	Notification *event.CallNotifiedData `json:"notification,omitempty"`
	Final        bool                    `json:"final,omitempty"`
	Result       json.RawMessage         `json:"result,omitempty"` // final, without Code
	Code         string                  `json:"code,omitempty"`   // final: it failed; SERVICE_LOST if the service went away
	Error        string                  `json:"error,omitempty"`
}

// takenMark begins the answer of a gateway that has taken something for one of its
// connections.
const takenMark = "+"

// CallTaken is what a gateway answers to whoever hands it a call: the call is in the
// queue of the service's socket, and load is how much the service has to do with it.
func CallTaken(load int) []byte { return strconv.AppendInt([]byte(takenMark), int64(load), 10) }

// ParseCallTaken reads such an answer. The load is -1 if the answer has none that makes
// sense.
func ParseCallTaken(answer []byte) (load int, taken bool) {
	text, taken := strings.CutPrefix(string(answer), takenMark)
	load, err := strconv.Atoi(text)
	if !taken || err != nil || load < 0 {
		load = -1
	}
	return load, taken
}

// NewTask asks for a task.
type NewTask struct {
	TaskID       string          `json:"task_id"`
	RequestID    string          `json:"request_id,omitempty"`
	ClientID     string          `json:"client_id,omitempty"`
	AgentID      string          `json:"agent_id,omitempty"`
	AgentName    string          `json:"agent_name,omitempty"`
	Capabilities []string        `json:"capabilities,omitempty"`
	TaskType     string          `json:"task_type,omitempty"`
	Data         json.RawMessage `json:"data"`
	QueueMS      int64           `json:"queue_ms,omitempty"` // 0 = the server's setting
	TimeoutMS    int64           `json:"timeout_ms,omitempty"`
	ParentID     string          `json:"parent_id,omitempty"`
	Depth        int             `json:"depth,omitempty"`
	Chain        []string        `json:"chain,omitempty"`
	Caller       json.RawMessage `json:"caller,omitempty"`
	Session      string          `json:"session,omitempty"` // whose unit of work it is: entity of the log
	Kind         id.Kind         `json:"kind,omitempty"`    // of that log; absent = session
	RunID        string          `json:"run_id,omitempty"`
	WorkID       string          `json:"work_id,omitempty"`
}

// TaskRefData names a task.
type TaskRefData struct {
	TaskID string `json:"task_id"`
}

// TaskView is a task as it is now.
type TaskView struct {
	event.TaskHead
	Status    string          `json:"status"` // created, queued, running, waiting_input, completed, failed, cancelled
	Progress  json.RawMessage `json:"progress,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Code      string          `json:"code,omitempty"`
	Error     string          `json:"error,omitempty"`
	CreatedAt time.Time       `json:"created_at"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`
}

// TaskMessage is what a client tells the agent that has its task.
type TaskMessage struct {
	TaskID      string          `json:"task_id"`
	ClientID    string          `json:"client_id"`
	RequestID   string          `json:"request_id,omitempty"`
	MessageType string          `json:"message_type,omitempty"`
	Message     json.RawMessage `json:"message"`
}

// CancelTaskData stops a task.
type CancelTaskData struct {
	TaskID    string `json:"task_id"`
	ClientID  string `json:"client_id,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// TaskReport is the status of a task as its agent sees it.
type TaskReport struct {
	TaskID   string          `json:"task_id"`
	AgentID  string          `json:"agent_id"`
	Attempt  int             `json:"attempt,omitempty"` // that it is about; 0 = the newest
	Status   string          `json:"status"`
	Error    string          `json:"error,omitempty"`
	Progress json.RawMessage `json:"progress,omitempty"`

	Connection string `json:"connection,omitempty"` // delivered: the connection that was handed the task
}

// TaskNotification is what an agent tells the client on the way.
type TaskNotification struct {
	TaskID           string          `json:"task_id"`
	AgentID          string          `json:"agent_id"`
	RequestID        string          `json:"request_id,omitempty"`
	NotificationType string          `json:"notification_type,omitempty"`
	Level            string          `json:"level,omitempty"`
	Message          json.RawMessage `json:"message"`
	Data             json.RawMessage `json:"data,omitempty"`
}

// TaskQuestion is what an agent asks the client.
type TaskQuestion struct {
	TaskID      string          `json:"task_id"`
	AgentID     string          `json:"agent_id"`
	RequestID   string          `json:"request_id"`
	MessageType string          `json:"message_type,omitempty"`
	Message     json.RawMessage `json:"message"`
	Options     json.RawMessage `json:"options,omitempty"`
	TimeoutMS   int64           `json:"timeout_ms,omitempty"`
}

// TaskResult is the end of a task as its agent reports it.
type TaskResult struct {
	TaskID  string          `json:"task_id"`
	AgentID string          `json:"agent_id"`
	Failed  bool            `json:"failed,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Code    string          `json:"code,omitempty"`
	Error   string          `json:"error,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
}

// AgentGone says that the agent which has the task is gone, or never got it.
type AgentGone struct {
	TaskID  string `json:"task_id"`
	AgentID string `json:"agent_id"`
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"` // agent_lost, agent_left, not_delivered, forgotten
}

// SpawnChild is an agent's request to another agent. TaskID is the parent.
type SpawnChild struct {
	TaskID      string          `json:"task_id"`
	AgentID     string          `json:"agent_id"`
	RequestID   string          `json:"request_id"`
	ChildID     string          `json:"child_id"`
	TargetName  string          `json:"target_name,omitempty"`
	TargetID    string          `json:"target_id,omitempty"`
	TaskType    string          `json:"task_type,omitempty"`
	Description string          `json:"description,omitempty"`
	Data        json.RawMessage `json:"data"`
	TimeoutMS   int64           `json:"timeout_ms,omitempty"`
}

// ClientNote is a message from one client to another.
type ClientNote struct {
	TargetID    string          `json:"target_id"`
	MessageType string          `json:"message_type,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
}
