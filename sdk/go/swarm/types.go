package swarm

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

type (
	// Welcome is the server's first word to a client.
	Welcome = asp.ClientWelcomeContent
	// TaskCreated says that a task was accepted.
	TaskCreated = asp.TaskCreatedContent
	// TaskResult is the end of a task, whatever it is.
	TaskResult = asp.TaskResultContent
	// TaskStatus is the current state of a task.
	TaskStatus = asp.TaskStatusContent
	// TaskFailure says that a task failed; its TaskResult follows.
	TaskFailure = asp.TaskErrorContent
	// TaskNotification is a notice of an agent during its work.
	TaskNotification = asp.TaskNotificationContent
	// TaskQuestion is a question of an agent; Client.TaskMessage answers it.
	TaskQuestion = asp.TaskQuestionContent
	// ChildTaskCreated says that an agent gave a task to another.
	ChildTaskCreated = asp.ChildTaskCreatedContent
	// ChildTaskStatus says that such a task has ended.
	ChildTaskStatus = asp.ChildTaskStatusContent
	// ServiceStarted says that an agent calls a service.
	ServiceStarted = asp.ServiceStartedContent
	// ServiceNotification is a notice of the service about the call.
	ServiceNotification = asp.ServiceNotificationContent
	// ServiceCompleted is the outcome of the call.
	ServiceCompleted = asp.ServiceCompletedContent
	// MCPExecution is the outcome of a call of an MCP server's tool.
	MCPExecution = asp.MCPExecutionContent
	// ClientNote is a message of another client.
	ClientNote = asp.ClientMessageContent
	// AgentEntry is an agent of a list.
	AgentEntry = asp.AgentEntry
	// ServiceEntry is a service of a list.
	ServiceEntry = asp.ServiceEntry
	// ServerEntry is an MCP server of a list.
	ServerEntry = asp.ServerEntry
	// ClientEntry is a client of a list.
	ClientEntry = asp.ClientEntry
	// ToolEntry is a tool of a list.
	ToolEntry = asp.ToolEntry
	// ServiceExecution is the outcome of an agent's call of a service.
	ServiceExecution = asp.ServiceExecuteReplyContent
	// TaskMetadata says where a task comes from.
	TaskMetadata = asp.ExecuteMetadata
	// CallMetadata says where a call comes from.
	CallMetadata = asp.CallMetadata
)

// Statuses of tasks.
const (
	TaskStatusCreated      = "created"
	TaskStatusQueued       = "queued"
	TaskStatusRunning      = "running"
	TaskStatusWaitingInput = "waiting_input"
	TaskStatusCompleted    = "completed"
	TaskStatusFailed       = "failed"
	TaskStatusCancelled    = "cancelled"
)

// Statuses of agents and services. Inactive agents and those in maintenance get no tasks; of the
// others, active ones come first. Services get calls only while they are active. Lists use these
// words, whatever the server's are.
const (
	StatusActive       = "active"
	StatusInactive     = "inactive"
	StatusBusy         = "busy"
	StatusError        = "error"
	StatusMaintenance  = "maintenance"
	StatusInitializing = "initializing" // in lists: busy
)

// Types of notifications.
const (
	Progress = "progress"
	Info     = "info"
	Warning  = "warning"
	Failure  = "error"
	Debug    = "debug"
	Step     = "step"
	Status   = "status"
)

// Filter narrows a list: every member that is not empty has to hold.
type Filter struct {
	Status       string   `json:"status,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"` // all of them
	Name         string   `json:"name,omitempty"`         // a part of it, case-insensitive
	Type         string   `json:"type,omitempty"`         // of clients and MCP servers
}

// filters is the content of requests for lists.
type filters struct {
	Filters any    `json:"filters"`
	After   string `json:"after,omitempty"` // the next of the page before
}

// NewTask describes a task and its agent: the one with AgentID, else one with AgentName, else any
// with all Capabilities.
type NewTask struct {
	AgentID      string
	AgentName    string
	Capabilities []string
	Type         string        // of the task, for the agent; may be empty
	Data         any           // for the agent; anything but nil that encodes to JSON
	QueueTimeout time.Duration // how long it may wait for an agent; 0 = the server's setting
	Timeout      time.Duration // of the whole task; 0 = the server's setting
}

// content returns the frame's content.
func (t NewTask) content() map[string]any {
	c := map[string]any{"taskData": t.Data}
	for name, value := range map[string]string{"agentId": t.AgentID, "agentName": t.AgentName, "taskType": t.Type} {
		if value != "" {
			c[name] = value
		}
	}
	for name, value := range map[string]time.Duration{"queueTimeout": t.QueueTimeout, "timeout": t.Timeout} {
		if value > 0 {
			c[name] = millis(value)
		}
	}
	if len(t.Capabilities) > 0 {
		c["capabilities"] = t.Capabilities
	}
	return c
}
