package command

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Task is the service of swarm tasks: registry, routing, life cycle.
var Task = id.MustName("task")

// Verbs of the task service for one task. Commands of one task are handled in order.
var (
	CreateTask  = id.MustName("create")          // data: NewTask
	MessageTask = id.MustName("message_task")    // data: TaskMessage; the client tells the agent
	CancelTask  = id.MustName("cancel")          // data: CancelTaskData
	ReportTask  = id.MustName("report")          // data: TaskReport; the agent's status
	NotifyTask  = id.MustName("notify")          // data: TaskNotification
	AskTask     = id.MustName("ask")             // data: TaskQuestion
	FinishTask  = id.MustName("finish")          // data: TaskResult; the agent's result or error
	ReleaseTask = id.MustName("release")         // data: AgentGone
	SpawnTask   = id.MustName("spawn")           // data: SpawnChild; the agent asks another agent
	EndChild    = id.MustName("end_child")       // data: event.ChildFinishedData
	CallTool    = id.MustName("call")            // data: ToolRequest; the agent calls a tool within the task
	NotifyCall  = id.MustName("notify_call")     // data: event.CallNotifiedData
	EndCall     = id.MustName("end_call")        // data: event.CallFinishedData
	CheckTask   = id.MustName("check_deadlines") // no data; a deadline of the task has passed
	DeleteTask  = id.MustName("delete")          // no data; the session that gave the task was deleted
)

// Verbs of the task service for one client: its key is the client's id.
var (
	TellClient = id.MustName("tell_client") // data: event.ClientMessageData
	AckClient  = id.MustName("ack_inbox")   // data: AckEvents; the client's position in its inbox. The highest counts
)

// Verbs of the task service for request and reply.
var (
	OpenClient   = id.MustName("open_inbox")    // OpenClientRequest -> OpenClientReply
	NameClient   = id.MustName("name_client")   // ParticipantRequest{Data: event.ClientRegisteredData} -> ClientEntry
	ListAgents   = id.MustName("list_agents")   // ParticipantRequest{Data: ParticipantFilter} -> ParticipantList
	ListServices = id.MustName("list_services") // ParticipantRequest{Data: ParticipantFilter} -> ParticipantList
	ListClients  = id.MustName("list_clients")  // ParticipantRequest{Data: ParticipantFilter} -> ParticipantList
	ListServers  = id.MustName("list_servers")  // ParticipantRequest{Data: ParticipantFilter} -> ParticipantList; MCP servers
	ListTools    = id.MustName("list_tools")    // ParticipantRequest{Data: ToolsOf} -> ToolList; of a service or an MCP server
	RunTool      = id.MustName("run_tool")      // ParticipantRequest{Data: ToolRequest} -> ToolOutcome; outside of a task
	ShowTask     = id.MustName("show_task")     // ParticipantRequest{Data: TaskRefData} -> TaskView
	SendClient   = id.MustName("send_client")   // ParticipantRequest{Data: ClientNote} -> ClientNote
	ReadTask     = id.MustName("read_task")     // ReadTaskRequest -> api.TaskRecord
	ListTasks    = id.MustName("list_tasks")    // TaskListRequest -> api.TaskPage
	Submit       = id.MustName("submit")        // ParticipantRequest{Data: NewTask} -> TaskView; checks the agent, then sends CreateTask
	RetryTask    = id.MustName("retry_task")    // ParticipantRequest{Data: TaskRetry} -> TaskView; submits a task that ended again
	StartTool    = id.MustName("start_tool")    // ParticipantRequest{Data: ToolStart} -> ToolOutcome; RunTool without a wait for long calls
	ListOffers   = id.MustName("list_offers")   // OfferListRequest -> api.ToolPage
	ReadOffer    = id.MustName("read_offer")    // ReadOfferRequest -> api.ToolDetail
)

// Kinds of participants.
const (
	ParticipantClient  = "client"
	ParticipantAgent   = "agent"
	ParticipantService = "service"
)

// Statuses of participants. Agents that are inactive or in maintenance do not get tasks; active ones come first. Services
// get calls only while they are active.
const (
	StatusActive       = "active"
	StatusBusy         = "busy"
	StatusInitializing = "initializing"
	StatusError        = "error"
	StatusInactive     = "inactive"
	StatusMaintenance  = "maintenance"
)

// Names under which the directory lists participants. While a participant reconnects the directory may have several entries for its
// id: the online one counts, of two the younger (Since).
var (
	WhatAgent   = id.MustName("agent")
	WhatService = id.MustName("asp-service")
	WhatClient  = id.MustName("client")
)

// ParticipantWhat returns the name under which the directory lists participants of the kind.
func ParticipantWhat(kind string) id.Name {
	switch kind {
	case ParticipantAgent:
		return WhatAgent
	case ParticipantService:
		return WhatService
	}
	return WhatClient
}

// Participant is a connected client, agent or service of the swarm, as its gateway knows it: the data of an entry in the
// directory.
type Participant struct {
	Kind         string            `json:"kind"`
	Tenant       id.Tenant         `json:"tenant,omitzero"` // absent = all: the built-in agent
	ID           string            `json:"id"`
	Name         string            `json:"name"`
	Capabilities []string          `json:"capabilities,omitempty"`
	Description  string            `json:"description,omitempty"`
	Status       string            `json:"status"`
	Tools        []ParticipantTool `json:"tools,omitempty"` // of a service
	Extra        json.RawMessage   `json:"extra,omitempty"` // manifest, type, version: other members of its registration, an object
	Principal    string            `json:"principal,omitempty"`
	Gateway      string            `json:"gateway,omitempty"` // instance
	Connection   string            `json:"connection,omitempty"`
	Incarnation  string            `json:"incarnation,omitempty"` // of an agent: changes when it returns after its presence has ended
	Online       bool              `json:"online"`
	Since        time.Time         `json:"since"`
	Load         int               `json:"load"`            // tasks or calls that its gateway has delivered to it
	Full         bool              `json:"full,omitempty"`  // an agent that accepts no more tasks until one has ended
	Knows        bool              `json:"knows,omitempty"` // an agent that has listed its remaining tasks of earlier connections:
	Holds        []string          `json:"holds,omitempty"` // these
}

// ParticipantTool is a tool that a service offers.
type ParticipantTool struct {
	ID           string          `json:"id"`
	Name         string          `json:"name,omitempty"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Idempotent   bool            `json:"idempotent,omitempty"`
}

// ParticipantRequest is a gateway's request for a connection.
type ParticipantRequest struct {
	Tenant    id.Tenant       `json:"tenant"`
	Principal string          `json:"principal,omitempty"`
	All       bool            `json:"all,omitempty"`  // the principal sees every task of the tenant
	Kind      string          `json:"kind"`           // of the participant
	ID        string          `json:"id"`             // of the participant
	Name      string          `json:"name,omitempty"` // of the participant
	ReplyTo   string          `json:"reply_to"`       // its connection
	RequestID string          `json:"request_id,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Proof     *event.Proof    `json:"proof,omitempty"` // of RunTool: that a person has asked for the call
}

// OpenClientRequest opens the inbox of a client, or resumes it.
type OpenClientRequest struct {
	Tenant    id.Tenant `json:"tenant"`
	Principal string    `json:"principal,omitempty"`
	ClientID  string    `json:"client_id,omitempty"` // to resume, with Token
	Token     string    `json:"token,omitempty"`
	After     *uint64   `json:"after,omitempty"` // the client's highest seq; absent: the one that its gateway last stored
}

// OpenClientReply names the inbox and the position to read from.
type OpenClientReply struct {
	ClientID string `json:"client_id"`
	Token    string `json:"token,omitempty"` // needed to resume
	After    string `json:"after"`           // cursor
	Resumed  bool   `json:"resumed"`
}

// ParticipantFilter narrows a list. All given members must match.
type ParticipantFilter struct {
	Status       string   `json:"status,omitempty"`       // a word of either Vocabulary
	Capabilities []string `json:"capabilities,omitempty"` // all of them
	Name         string   `json:"name,omitempty"`         // part of it, case-insensitive
	Prefix       string   `json:"prefix,omitempty"`       // beginning of the name; the order of the list makes it cheap
	Type         string   `json:"type,omitempty"`

	After string `json:"after,omitempty"` // only those behind the participant with this Place
	Limit int    `json:"limit,omitempty"` // how many at most; 0: as many as fit into a message of the bus
}

// ParticipantList is a page of a list, in the order of Participant.Place.
type ParticipantList struct {
	Participants []Participant `json:"peers"`
	More         bool          `json:"more,omitempty"` // further ones follow the last
}

// Next returns what After of the next page has to be, empty if no page follows.
func (l ParticipantList) Next() string {
	if !l.More || len(l.Participants) == 0 {
		return ""
	}
	return l.Participants[len(l.Participants)-1].Place()
}

// Place returns where the participant is in a list: by name, then by id. Places differ, and have characters of
// base64url only.
func (p Participant) Place() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.Name + "\x00" + p.ID))
}

// ParsePlace returns the name and the id of the participant with a Place; both are empty for an empty place. An invalid
// place is the fault INVALID_FIELD.
func ParsePlace(place string) (name, own string, err error) {
	if place == "" {
		return "", "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(place)
	name, own, ok := strings.Cut(string(b), "\x00")
	if err != nil || !ok {
		return "", "", fault.Newf(fault.InvalidField, "This is not the next value of an earlier page.").At("after").Wrap(err)
	}
	return name, own, nil
}

// Follows reports whether the participant is behind a place. An invalid place is the fault INVALID_FIELD.
func (p Participant) Follows(place string) (bool, error) {
	name, own, err := ParsePlace(place)
	return err == nil && (place == "" || cmp.Or(cmp.Compare(p.Name, name), cmp.Compare(p.ID, own)) > 0), err
}

// ToolsOf names a service or an MCP server.
type ToolsOf struct {
	Kind   string `json:"kind"` // service, mcp
	Server string `json:"server"`
}

// ToolList is what a service or an MCP server offers.
type ToolList struct {
	Server string            `json:"server"`
	Name   string            `json:"name"`
	Tools  []ParticipantTool `json:"tools"`
}

// ToolRequest asks for one run of a tool.
type ToolRequest struct {
	TaskID       string           `json:"task_id,omitempty"` // within this task; empty: found by who asks, or none
	AgentID      string           `json:"agent_id,omitempty"`
	RequestID    string           `json:"request_id,omitempty"`
	CallID       string           `json:"call_id,omitempty"` // outside of a task: one that comes again is one call; empty = the service's
	Kind         string           `json:"kind"`              // service, mcp
	Server       string           `json:"server"`
	Tool         string           `json:"tool"`
	Arguments    json.RawMessage  `json:"arguments,omitempty"`
	ArgumentsRef *event.ObjectRef `json:"arguments_ref,omitempty"` // instead of arguments: the object that holds them
	TimeoutMS    int64            `json:"timeout_ms,omitempty"`
	Priority     string           `json:"priority,omitempty"`
}

// ToolOutcome is the outcome of a ToolRequest.
type ToolOutcome struct {
	ToolRequest
	ServerName string          `json:"server_name,omitempty"`
	Status     string          `json:"status"` // success, error, unknown; of StartTool queued or running, too
	Result     json.RawMessage `json:"result,omitempty"`
	Code       string          `json:"code,omitempty"`
	Error      string          `json:"error,omitempty"`
	Field      string          `json:"field,omitempty"`   // JSON pointer of the argument that does not fit
	Details    json.RawMessage `json:"details,omitempty"` // of a failed service, in its own form: at least its code, if it has one
	DurationMS int64           `json:"duration_ms"`
}

// CallNews is a gateway's message to the inbox of a call (event.CallRequestedData): a notification of the service, or
// once, with Final, the outcome. A notification may follow the outcome.
type CallNews struct {
	CallID       string                  `json:"call_id"`
	ServiceID    string                  `json:"service_id"` // the service, as its gateway knows it
	Notification *event.CallNotifiedData `json:"notification,omitempty"`
	Final        bool                    `json:"final,omitempty"`
	Result       json.RawMessage         `json:"result,omitempty"` // final, without Code
	Code         string                  `json:"code,omitempty"`   // final: it failed; SERVICE_LOST if the service went away
	Error        string                  `json:"error,omitempty"`
	Details      json.RawMessage         `json:"details,omitempty"` // final: of the failure, in the form of the service
}

// takenMark begins the answer of a gateway that has accepted a call or task for one of the gateway's connections.
const takenMark = "+"

// CallTaken is a gateway's answer to the sender of a call: the queue of the service's connection holds the call, and
// load is the number of the service's open calls.
func CallTaken(load int) []byte { return strconv.AppendInt([]byte(takenMark), int64(load), 10) }

// ParseCallTaken reads such an answer. The load is -1 if the answer lacks a valid one.
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
	TaskID       string           `json:"task_id"`
	RequestID    string           `json:"request_id,omitempty"`
	ClientID     string           `json:"client_id,omitempty"`
	AgentID      string           `json:"agent_id,omitempty"`
	AgentName    string           `json:"agent_name,omitempty"`
	Capabilities []string         `json:"capabilities,omitempty"`
	TaskType     string           `json:"task_type,omitempty"`
	Data         json.RawMessage  `json:"data"`
	DataRef      *event.ObjectRef `json:"data_ref,omitempty"` // instead of data: the object that holds it
	QueueMS      int64            `json:"queue_ms,omitempty"` // 0 = the server's setting
	TimeoutMS    int64            `json:"timeout_ms,omitempty"`
	ParentID     string           `json:"parent_id,omitempty"`
	Depth        int              `json:"depth,omitempty"`
	RootID       string           `json:"root_id,omitempty"`
	Chain        []string         `json:"chain,omitempty"`
	Caller       json.RawMessage  `json:"caller,omitempty"`
	AskerID      string           `json:"asker_id,omitempty"` // agent that asks for it outside of any task: it is told of the end
	Session      string           `json:"session,omitempty"`  // the owner of the job: entity of the log
	Kind         id.Kind          `json:"kind,omitempty"`     // of that log; absent = session
	RunID        string           `json:"run_id,omitempty"`
	JobID        string           `json:"job_id,omitempty"`
	Owner        string           `json:"owner,omitempty"`    // of that log
	Seen         uint64           `json:"seen,omitempty"`     // revision of the directory that has the agent
	RetryOf      string           `json:"retry_of,omitempty"` // the task that it repeats
}

// TaskRetry asks for a task like one that has ended.
type TaskRetry struct {
	TaskID string `json:"task_id"` // that ended
	NewID  string `json:"new_id"`  // of the new task
}

// ReadTaskRequest asks for a task and its input.
type ReadTaskRequest struct {
	Tenant    id.Tenant `json:"tenant"`
	Principal string    `json:"principal,omitempty"`
	All       bool      `json:"all,omitempty"` // as in ParticipantRequest
	Task      id.Entity `json:"task"`
}

// TaskListRequest asks for a page of tasks.
type TaskListRequest struct {
	Tenant    id.Tenant `json:"tenant"`
	Principal string    `json:"principal,omitempty"`
	All       bool      `json:"all,omitempty"`    // as in ParticipantRequest
	Before    string    `json:"before,omitempty"` // the member next of the previous page
	Limit     int       `json:"limit"`            // an answer has fewer tasks if more do not fit into a message of the bus
}

// TaskRefData names a task.
type TaskRefData struct {
	TaskID string `json:"task_id"`
}

// TaskView is a task as it is now.
type TaskView struct {
	event.TaskHead
	Status    string           `json:"status"` // created, queued, running, waiting_input, completed, failed, cancelled
	Progress  json.RawMessage  `json:"progress,omitempty"`
	Result    json.RawMessage  `json:"result,omitempty"`
	ResultRef *event.ObjectRef `json:"result_ref,omitempty"` // instead of result: the object that holds it
	Code      string           `json:"code,omitempty"`
	Error     string           `json:"error,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
	EndedAt   time.Time        `json:"ended_at,omitzero"`
	Before    bool             `json:"before,omitempty"` // of Submit: a task with the same id already existed
}

// TypeInputResponse is the type of a message that answers a question of the agent, and is nothing else.
const TypeInputResponse = "input_response"

// TaskMessage is a client's message to the agent of its task.
type TaskMessage struct {
	TaskID      string           `json:"task_id"`
	ClientID    string           `json:"client_id"`
	RequestID   string           `json:"request_id,omitempty"`
	MessageType string           `json:"message_type,omitempty"`
	Message     json.RawMessage  `json:"message"`
	MessageRef  *event.ObjectRef `json:"message_ref,omitempty"` // instead of message: the object that holds it
	InputID     string           `json:"input_id,omitempty"`    // the question that it answers and that has to be open; absent = any

	Asked uint64             `json:"asked,omitempty"` // instead of input_id: the sequence of the question in the task's log
	Given *event.GivenAnswer `json:"given,omitempty"` // with asked: how the answer was given in the log of the job
}

// CancelTaskData stops a task.
type CancelTaskData struct {
	TaskID    string `json:"task_id"`
	ClientID  string `json:"client_id,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// TaskReport is the status of a task, as its agent reports it.
type TaskReport struct {
	TaskID   string          `json:"task_id"`
	AgentID  string          `json:"agent_id"`
	Attempt  int             `json:"attempt,omitempty"` // the reported attempt; 0 = the newest
	Status   string          `json:"status"`
	Error    string          `json:"error,omitempty"`
	Progress json.RawMessage `json:"progress,omitempty"`

	Connection string `json:"connection,omitempty"` // delivered: the connection that got the task
}

// TaskNotification is an agent's message to the client during a task.
type TaskNotification struct {
	TaskID           string           `json:"task_id"`
	AgentID          string           `json:"agent_id"`
	RequestID        string           `json:"request_id,omitempty"`
	NotificationType string           `json:"notification_type,omitempty"`
	Level            string           `json:"level,omitempty"`
	Message          json.RawMessage  `json:"message"`
	MessageRef       *event.ObjectRef `json:"message_ref,omitempty"` // instead of message: the object that holds it
	Data             json.RawMessage  `json:"data,omitempty"`
	DataRef          *event.ObjectRef `json:"data_ref,omitempty"` // instead of data: the object that holds it
}

// TaskQuestion is an agent's question to the client.
type TaskQuestion struct {
	TaskID      string           `json:"task_id"`
	AgentID     string           `json:"agent_id"`
	RequestID   string           `json:"request_id"`
	MessageType string           `json:"message_type,omitempty"`
	Message     json.RawMessage  `json:"message"`
	MessageRef  *event.ObjectRef `json:"message_ref,omitempty"` // instead of message: the object that holds it
	Options     json.RawMessage  `json:"options,omitempty"`
	TimeoutMS   int64            `json:"timeout_ms,omitempty"`
}

// TaskResult is the end of a task as its agent reports it.
type TaskResult struct {
	TaskID    string           `json:"task_id"`
	AgentID   string           `json:"agent_id"`
	Failed    bool             `json:"failed,omitempty"`
	Result    json.RawMessage  `json:"result,omitempty"`
	ResultRef *event.ObjectRef `json:"result_ref,omitempty"` // instead of result: the object that holds it
	Code      string           `json:"code,omitempty"`
	Error     string           `json:"error,omitempty"`
	Details   json.RawMessage  `json:"details,omitempty"`
}

// AgentGone reports that the agent of the task has gone, or never got the task.
type AgentGone struct {
	TaskID  string `json:"task_id"`
	AgentID string `json:"agent_id"`
	Attempt int    `json:"attempt"`
	Reason  string `json:"reason"` // agent_lost, agent_left, not_delivered, forgotten, silent
}

// SpawnChild is an agent's request to another agent. TaskID is the parent. An inferred parent counts if the agent has
// it; otherwise the child has no parent.
type SpawnChild struct {
	TaskID      string           `json:"task_id"`
	AgentID     string           `json:"agent_id"`
	RequestID   string           `json:"request_id"`
	ChildID     string           `json:"child_id"`
	TargetName  string           `json:"target_name,omitempty"`
	TargetID    string           `json:"target_id,omitempty"`
	TaskType    string           `json:"task_type,omitempty"`
	Description string           `json:"description,omitempty"`
	Data        json.RawMessage  `json:"data"`
	DataRef     *event.ObjectRef `json:"data_ref,omitempty"` // instead of data: the object that holds it
	TimeoutMS   int64            `json:"timeout_ms,omitempty"`
	Inferred    bool             `json:"inferred,omitempty"`
	AgentName   string           `json:"agent_name,omitempty"`
}

// Apart returns the request as a task without a parent, and makes the agent the recipient of its end.
func (s SpawnChild) Apart() NewTask {
	t := NewTask{
		TaskID: s.ChildID, RequestID: s.RequestID, AgentID: s.TargetID, AgentName: s.TargetName, TaskType: s.TaskType,
		Data: s.Data, DataRef: s.DataRef, TimeoutMS: s.TimeoutMS,
	}
	t.AskedBy(s.AgentID, s.AgentName)
	return t
}

// AskedBy makes the agent the recipient of the task's end.
func (t *NewTask) AskedBy(agentID, name string) {
	t.AskerID, t.Chain = agentID, []string{name}
	t.Caller, _ = json.Marshal(struct { // two strings always have a JSON form
		ID   string `json:"id"`
		Name string `json:"name"`
	}{agentID, name})
}

// ClientNote is a message from one client to another.
type ClientNote struct {
	MessageID   string          `json:"message_id,omitempty"` // a repeat has the same id; empty = the service chooses one
	TargetID    string          `json:"target_id"`
	MessageType string          `json:"message_type,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
}
