package asp

import "encoding/json"

// ClientWelcomeContent is the content of orchestrator.client.welcome. A client that reconnects with
// clientId and resumeToken is the same client.
type ClientWelcomeContent struct {
	ClientID            string       `json:"clientId"`
	Version             string       `json:"version"`
	OrchestratorVersion string       `json:"orchestratorVersion"` // the same
	Message             string       `json:"message"`
	ResumeToken         string       `json:"resumeToken,omitempty"` // shown once, when the client is made. Addition
	Resumed             bool         `json:"resumed,omitempty"`     // the client came back. Addition
	Config              ClientConfig `json:"config"`
}

// ClientConfig is what a client should know of the server.
type ClientConfig struct {
	MaxConcurrentTasks int      `json:"maxConcurrentTasks"` // of one agent
	DefaultTimeout     int64    `json:"defaultTimeout"`     // ms; how long a task waits for an agent, unless it says otherwise
	SupportedFeatures  []string `json:"supportedFeatures"`
}

// AgentListContent is the content of a list of agents.
type AgentListContent struct {
	Agents []AgentEntry `json:"agents"`
	Next   string       `json:"next,omitempty"` // addition: after of the next page; empty if no page follows
}

// AgentEntry is an agent of a list. Status: active, inactive, busy, error, maintenance.
type AgentEntry struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Status       string   `json:"status"`
	State        string   `json:"state"` // the same in the other vocabulary. Addition
	Capabilities []string `json:"capabilities"`
	Description  string   `json:"description,omitempty"`
	AgentType    string   `json:"agentType,omitempty"`
	RegisteredAt string   `json:"registeredAt,omitempty"`
	Online       bool     `json:"online"` // it has a connection. Addition
}

// TaskCreatedContent is the content of client.agent.task.create.response. Status: created.
type TaskCreatedContent struct {
	TaskID    string `json:"taskId"`
	AgentID   string `json:"agentId,omitempty"` // absent where any agent may take it
	AgentName string `json:"agentName,omitempty"`
	Status    string `json:"status"`
	CreatedAt string `json:"createdAt"`
	Message   string `json:"message"`
}

// TaskResultContent is the content of client.agent.task.result: the end of a task,
// whatever it is. Status: completed, failed, cancelled.
type TaskResultContent struct {
	TaskID      string          `json:"taskId"`
	AgentID     string          `json:"agentId,omitempty"`
	AgentName   string          `json:"agentName,omitempty"`
	Status      string          `json:"status"`
	Result      json.RawMessage `json:"result,omitempty"`
	Error       string          `json:"error,omitempty"` // unless completed
	Code        string          `json:"code,omitempty"`
	Details     json.RawMessage `json:"details,omitempty"`
	CreatedAt   string          `json:"createdAt,omitempty"`
	CompletedAt string          `json:"completedAt"`
}

// TaskStatusContent is the content of client.agent.task.status.response. Status:
// created, queued, running, waiting_input, completed, failed, cancelled. Result is that of a completed task, and a TaskFailure
// of one that failed or was cancelled: the calls of the SDK reject an answer with a member error.
type TaskStatusContent struct {
	TaskID      string          `json:"taskId"`
	Status      string          `json:"status"`
	AgentID     string          `json:"agentId,omitempty"`
	AgentName   string          `json:"agentName,omitempty"`
	CreatedAt   string          `json:"createdAt,omitempty"`
	Progress    json.RawMessage `json:"progress,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	CompletedAt string          `json:"completedAt,omitempty"`
}

// TaskFailure is the result of a task that failed or was cancelled.
type TaskFailure struct {
	Error  string          `json:"error"`
	Code   string          `json:"code,omitempty"`
	Result json.RawMessage `json:"result,omitempty"` // that the agent gave nevertheless
}

// TaskCancelContent is the content of client.agent.task.cancel.response. Status: cancelled.
type TaskCancelContent struct {
	TaskID  string `json:"taskId"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

// TaskNotificationContent is the content of task.notification. NotificationType:
// progress, info, warning, error, debug, step, status, or the agent's own word. Those of
// type status are also how the server tells that a task waits, has an agent or lost it:
// data.status is then a status of the task.
type TaskNotificationContent struct {
	TaskID           string          `json:"taskId"`
	AgentID          string          `json:"agentId,omitempty"`
	AgentName        string          `json:"agentName,omitempty"`
	NotificationType string          `json:"notificationType"`
	Message          json.RawMessage `json:"message"`                // a text, unless the server is set to pass on what the agent gave
	Notification     json.RawMessage `json:"notification,omitempty"` // the agent's value, if that is not a text. Addition
	Data             json.RawMessage `json:"data,omitempty"`
	Level            string          `json:"level"`
	ParentTaskID     string          `json:"parentTaskId,omitempty"`        // of a child task
	ChildTaskID      string          `json:"childTaskId,omitempty"`         // of a child task: itself
	ChildAgentName   string          `json:"childAgentName,omitempty"`      // of a child task
	IsChild          bool            `json:"isChildAgentMessage,omitempty"` // of a child task
	Timestamp        string          `json:"timestamp"`
}

// StatusData is the data of a task.notification that the server itself makes.
type StatusData struct {
	Status   string          `json:"status"`
	Reason   string          `json:"reason,omitempty"`
	Attempt  int             `json:"attempt,omitempty"`
	InputID  string          `json:"inputId,omitempty"`
	Progress json.RawMessage `json:"progress,omitempty"`
}

// TaskErrorContent is the content of task.error. Status: failed.
type TaskErrorContent struct {
	TaskID    string          `json:"taskId"`
	AgentID   string          `json:"agentId,omitempty"`
	AgentName string          `json:"agentName,omitempty"`
	Error     string          `json:"error"`
	Code      string          `json:"code"`
	Details   json.RawMessage `json:"details,omitempty"`
	Status    string          `json:"status"`
	FailedAt  string          `json:"failedAt"`
	Timestamp string          `json:"timestamp"`
}

// TaskQuestionContent is the content of task.requestmessage. A task.message answers it.
type TaskQuestionContent struct {
	TaskID      string          `json:"taskId"`
	AgentID     string          `json:"agentId,omitempty"`
	AgentName   string          `json:"agentName,omitempty"`
	MessageType string          `json:"messageType"`
	Message     json.RawMessage `json:"message"`
	Options     json.RawMessage `json:"options,omitempty"`
	Timeout     int64           `json:"timeout"` // ms
	InputID     string          `json:"inputId"` // names the question. Addition

	ParentTaskID string `json:"parentTaskId,omitempty"` // of a run that is watched: the run, whose question is a task of its own. Addition
}

// TaskMessageSentContent is the content of task.message.sent. Status: sent.
type TaskMessageSentContent struct {
	TaskID  string `json:"taskId"`
	Status  string `json:"status"`
	InputID string `json:"inputId,omitempty"` // the question that it answered. Addition
}

// ChildTaskCreatedContent is the content of task.childtask.created.
type ChildTaskCreatedContent struct {
	ParentTaskID   string `json:"parentTaskId"`
	ChildTaskID    string `json:"childTaskId"`
	AgentID        string `json:"agentId,omitempty"`      // the agent that asked for it
	ChildAgentID   string `json:"childAgentId,omitempty"` // absent where it is not chosen yet
	ChildAgentName string `json:"childAgentName,omitempty"`
	TaskType       string `json:"taskType,omitempty"`
	Description    string `json:"description,omitempty"`
}

// ChildTaskStatusContent is the content of task.childtask.status. Status: completed,
// failed, cancelled.
type ChildTaskStatusContent struct {
	ParentTaskID string          `json:"parentTaskId"`
	ChildTaskID  string          `json:"childTaskId"`
	Status       string          `json:"status"`
	Result       json.RawMessage `json:"result,omitempty"`
	Error        string          `json:"error,omitempty"`
	Code         string          `json:"code,omitempty"`
}

// ServiceStartedContent is the content of service.started.
type ServiceStartedContent struct {
	ServiceID     string `json:"serviceId"`
	ServiceName   string `json:"serviceName"`
	TaskID        string `json:"taskId"`
	Operation     string `json:"operation"` // the tool
	ServiceTaskID string `json:"serviceTaskId"`
	ToolID        string `json:"toolId"`   // the same as operation
	ToolName      string `json:"toolName"` // the same as operation
	AgentID       string `json:"agentId,omitempty"`
	AgentName     string `json:"agentName,omitempty"`
	Timestamp     string `json:"timestamp"`
}

// ServiceNotificationContent is the content of service.notification to clients and
// agents. Notification repeats it in the form of the SDKs.
type ServiceNotificationContent struct {
	ServiceID        string          `json:"serviceId"`
	ServiceName      string          `json:"serviceName"`
	TaskID           string          `json:"taskId,omitempty"`
	ServiceTaskID    string          `json:"serviceTaskId"`
	NotificationType string          `json:"notificationType"`
	Message          string          `json:"message"`
	Data             json.RawMessage `json:"data,omitempty"`
	Notification     Notification    `json:"notification"`
	Timestamp        string          `json:"timestamp"`
}

// Notification is what a service says. Type: progress, info, warning, error, debug,
// started, completed, failed.
type Notification struct {
	Type      string          `json:"type"`
	Message   string          `json:"message"`
	Timestamp string          `json:"timestamp"`
	Data      json.RawMessage `json:"data,omitempty"`
}

// ServiceCompletedContent is the content of service.completed. Status: success, error,
// unknown (the service went away; whether the call had its effect is not known).
type ServiceCompletedContent struct {
	ServiceID     string          `json:"serviceId"`
	ServiceName   string          `json:"serviceName"`
	TaskID        string          `json:"taskId"`
	ServiceTaskID string          `json:"serviceTaskId"`
	Status        string          `json:"status"`
	Result        json.RawMessage `json:"result,omitempty"`
	Error         string          `json:"error,omitempty"`
	Code          string          `json:"code,omitempty"`
	Details       json.RawMessage `json:"details,omitempty"` // of a failed service, in its own form, with its code
	ExecutionTime int64           `json:"executionTime"`     // ms
	Timestamp     string          `json:"timestamp"`
}

// ServerListContent is the content of a list of MCP servers.
type ServerListContent struct {
	Servers []ServerEntry `json:"servers"`
	Next    string        `json:"next,omitempty"` // addition: after of the next page; empty if no page follows
}

// ServerEntry is an MCP server of a list.
type ServerEntry struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Type         string   `json:"type"`
	Status       string   `json:"status"`
	State        string   `json:"state"` // the same in the other vocabulary. Addition
	Capabilities []string `json:"capabilities"`
}

// ServerToolsContent is the content of mcp.server.tools and mcp.tools.list.result.
type ServerToolsContent struct {
	ServerID   string      `json:"serverId"`
	ServerName string      `json:"serverName"`
	Tools      []ToolEntry `json:"tools"`
}

// ToolEntry is a tool of a list. The schemas are JSON Schemas.
type ToolEntry struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`            // of an MCP server's tool: by which it is called
	Title        string          `json:"title,omitempty"` // of an MCP server's tool, for people. Addition
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"inputSchema,omitempty"`
	Parameters   json.RawMessage `json:"parameters,omitempty"` // the same as inputSchema
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

// MCPExecutionContent is the content of mcp.task.execution and mcp.tool.execute.result.
// Status: success, error, unknown.
type MCPExecutionContent struct {
	ServerID      string          `json:"serverId"`
	ServerName    string          `json:"serverName,omitempty"`
	ToolName      string          `json:"toolName"`
	TaskID        string          `json:"taskId,omitempty"` // the task whose agent asked for it
	Status        string          `json:"status"`
	Result        json.RawMessage `json:"result,omitempty"`
	Error         string          `json:"error,omitempty"`
	Code          string          `json:"code,omitempty"`
	ExecutionTime int64           `json:"executionTime"` // ms
}

// RegisterResponseContent is the content of client.register.response.
type RegisterResponseContent struct {
	Success  bool        `json:"success"` // always true
	ClientID string      `json:"clientId"`
	Client   ClientEntry `json:"client"`
}

// ClientListContent is the content of client.list.response.
type ClientListContent struct {
	Clients []ClientEntry `json:"clients"`
	Next    string        `json:"next,omitempty"` // addition: after of the next page; empty if no page follows
}

// ClientEntry is a client of a list.
type ClientEntry struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Status       string   `json:"status"`
	State        string   `json:"state"` // the same in the other vocabulary. Addition
	ClientType   string   `json:"clientType,omitempty"`
	Version      string   `json:"version,omitempty"`
	Capabilities []string `json:"capabilities"`
	RegisteredAt string   `json:"registeredAt,omitempty"`
	Online       bool     `json:"online"` // Addition
}

// ClientMessageContent is the content of client.message to a client.
type ClientMessageContent struct {
	MessageID      string          `json:"messageId"`
	Sender         Party           `json:"sender"`
	SenderClientID string          `json:"senderClientId"` // the same as sender.id
	TargetClientID string          `json:"targetClientId"`
	MessageType    string          `json:"messageType,omitempty"`
	Data           json.RawMessage `json:"data,omitempty"`
	ExpiresAt      string          `json:"expiresAt,omitempty"`
	Timestamp      string          `json:"timestamp"`
}

// Party is one end of a message. Type: client.
type Party struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// MessageSentContent is the content of message.sent. Status: sent.
type MessageSentContent struct {
	Target         Party  `json:"target"`
	TargetClientID string `json:"targetClientId"` // the same as target.id
	Status         string `json:"status"`
}

// ErrorContent is the content of error, of all roles. Code is one of the error catalogue.
type ErrorContent struct {
	Error    string          `json:"error"`
	Code     string          `json:"code"`
	Details  string          `json:"details,omitempty"`
	Field    string          `json:"field,omitempty"`    // the offending member
	Provided json.RawMessage `json:"provided,omitempty"` // its value, or the beginning of it
	TaskID   string          `json:"taskId,omitempty"`
}

// PulseContent is the content of ping and pong.
type PulseContent struct {
	Timestamp string `json:"timestamp"`
}
