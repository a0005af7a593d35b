package swarm

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// Contents of frames, as the protocol has them.
type (
	Welcome             = asp.ClientWelcomeContent       // the server's first word to a client
	TaskCreated         = asp.TaskCreatedContent         // a task was accepted
	TaskResult          = asp.TaskResultContent          // the end of a task, whatever it is
	TaskStatus          = asp.TaskStatusContent          // a task as it is now
	TaskFailure         = asp.TaskErrorContent           // a task failed; its TaskResult follows
	TaskNotification    = asp.TaskNotificationContent    // what an agent says on the way
	TaskQuestion        = asp.TaskQuestionContent        // an agent asks; Client.TaskMessage answers
	ChildTaskCreated    = asp.ChildTaskCreatedContent    // an agent gave a task to another
	ChildTaskStatus     = asp.ChildTaskStatusContent     // such a task has ended
	ServiceStarted      = asp.ServiceStartedContent      // an agent calls a service
	ServiceNotification = asp.ServiceNotificationContent // the service says how the call is
	ServiceCompleted    = asp.ServiceCompletedContent    // the outcome of the call
	MCPExecution        = asp.MCPExecutionContent        // the outcome of a call of an MCP server's tool
	ClientNote          = asp.ClientMessageContent       // a message of another client
	AgentEntry          = asp.AgentEntry                 // an agent of a list
	ServiceEntry        = asp.ServiceEntry               // a service of a list
	ServerEntry         = asp.ServerEntry                // an MCP server of a list
	ClientEntry         = asp.ClientEntry                // a client of a list
	ToolEntry           = asp.ToolEntry                  // a tool of a list
	ServiceExecution    = asp.ServiceExecuteReplyContent // the outcome of an agent's call of a service
	TaskMetadata        = asp.ExecuteMetadata            // where a task comes from
	CallMetadata        = asp.CallMetadata               // where a call comes from
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

// Statuses of agents and services. Only active ones are given work.
const (
	StatusActive      = "active"
	StatusInactive    = "inactive"
	StatusBusy        = "busy"
	StatusError       = "error"
	StatusMaintenance = "maintenance"
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
	Name         string   `json:"name,omitempty"`         // a part of it, whatever the case
	Type         string   `json:"type,omitempty"`         // of clients and MCP servers
}

// filters is the content of requests for lists.
type filters struct {
	Filters Filter `json:"filters"`
}

// NewTask says what is to be done, and by whom: the agent with AgentID, else one with
// AgentName, else any that has all Capabilities.
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
