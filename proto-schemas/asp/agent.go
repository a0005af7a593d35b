package asp

import "encoding/json"

// WelcomeContent is the content of orchestrator.welcome.
type WelcomeContent struct {
	Version             string        `json:"version"`
	OrchestratorVersion string        `json:"orchestratorVersion"` // the same
	Message             string        `json:"message"`
	Config              WelcomeConfig `json:"config"`
}

// WelcomeConfig is what an agent or a service should know of the server.
type WelcomeConfig struct {
	MaxConcurrentTasks int   `json:"maxConcurrentTasks"`    // of one connection
	HeartbeatInterval  int64 `json:"heartbeatInterval"`     // ms
	TaskTimeout        int64 `json:"taskTimeout,omitempty"` // ms; agents: absent = tasks have no deadline of their own
}

// AgentRegisteredContent is the content of agent.registered.
type AgentRegisteredContent struct {
	ID      string `json:"id"`
	AgentID string `json:"agentId"` // the same
	Name    string `json:"name"`
	Status  string `json:"status"`
	State   string `json:"state"` // the same in the other vocabulary. Addition
	Message string `json:"message"`
}

// UnregisteredContent is the content of agent.unregistered and service.unregistered.
type UnregisteredContent struct {
	ID      string `json:"id"`
	Message string `json:"message"`
}

// StatusUpdatedContent is the content of agent.status.updated and service.status.updated.
type StatusUpdatedContent struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	State   string `json:"state"` // the same in the other vocabulary. Addition
	Message string `json:"message"`
}

// TaskExecuteContent is the content of task.execute, in both forms of the protocol.
type TaskExecuteContent struct {
	TaskID   string          `json:"taskId"`
	Type     string          `json:"type,omitempty"`
	Data     json.RawMessage `json:"data"` // of a child task that is an object: with metadata.requestingAgent
	TaskType string          `json:"taskType,omitempty"`
	Input    json.RawMessage `json:"input"` // as the task was created
	Metadata ExecuteMetadata `json:"metadata"`
}

// ExecuteMetadata says where a task comes from.
type ExecuteMetadata struct {
	ClientID          string          `json:"clientId,omitempty"`
	RequestingAgentID string          `json:"requestingAgentId,omitempty"` // of a child task
	RequestingAgent   json.RawMessage `json:"requestingAgent,omitempty"`   // of a child task: id and name
	ParentTaskID      string          `json:"parentTaskId,omitempty"`      // of a child task
	Attempt           int             `json:"attempt"`                     // 1 for the first agent that gets the task. Addition
	Timestamp         string          `json:"timestamp"`
	Timeout           int64           `json:"timeout,omitempty"`  // ms from timestamp to deadline
	Deadline          string          `json:"deadline,omitempty"` // Addition
}

// CancelTaskContent is the content of task.cancel: the agent need not continue.
type CancelTaskContent struct {
	TaskID string `json:"taskId"`
	Reason string `json:"reason,omitempty"`
}

// TaskMessageResponseContent is the content of task.messageresponse: what the client
// says, of its own accord or as the answer to a question.
type TaskMessageResponseContent struct {
	TaskID      string          `json:"taskId"`
	MessageType string          `json:"messageType"`
	Message     json.RawMessage `json:"message"`
	ClientID    string          `json:"clientId"`
	InputID     string          `json:"inputId,omitempty"` // the question that it answers. Addition
}

// TaskMessageReceivedContent is the content of task.message.received. Status: received.
type TaskMessageReceivedContent struct {
	TaskID string `json:"taskId"`
	Status string `json:"status"`
}

// ServiceListContent is the content of agent.service.list.response.
type ServiceListContent struct {
	Services []ServiceEntry `json:"services"`
	Next     string         `json:"next,omitempty"` // addition: after of the next page; empty if no page follows
}

// ServiceEntry is a service of a list.
type ServiceEntry struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Status       string   `json:"status"`
	State        string   `json:"state"` // the same in the other vocabulary. Addition
	Capabilities []string `json:"capabilities"`
	Description  string   `json:"description,omitempty"`
	Online       bool     `json:"online"` // Addition
}

// ServiceToolsContent is the content of service.tools.list.response.
type ServiceToolsContent struct {
	ServiceID   string      `json:"serviceId"`
	ServiceName string      `json:"serviceName"`
	Tools       []ToolEntry `json:"tools"`
}

// ServiceExecuteReplyContent is the content of service.task.execute.response. Status:
// completed, failed, unknown (the service went away; whether the call had its effect is
// not known).
type ServiceExecuteReplyContent struct {
	ServiceTaskID string          `json:"serviceTaskId,omitempty"` // absent outside of a task
	ServiceID     string          `json:"serviceId"`
	ServiceName   string          `json:"serviceName,omitempty"`
	ToolID        string          `json:"toolId"`
	TaskID        string          `json:"taskId,omitempty"`
	Status        string          `json:"status"`
	Result        json.RawMessage `json:"result,omitempty"`
	Error         string          `json:"error,omitempty"`
	Code          string          `json:"code,omitempty"`
	Details       json.RawMessage `json:"details,omitempty"` // of a failed service, in its own form, with its code
	ExecutionTime int64           `json:"executionTime"`     // ms
}

// ChildAcceptedContent is the content of childagent.request.accepted. Status: accepted.
// The frame has no requestId: one would end the call of the SDK that waits for the child.
type ChildAcceptedContent struct {
	ChildTaskID  string `json:"childTaskId"`
	ParentTaskID string `json:"parentTaskId,omitempty"` // absent: the child has none
	TargetAgent  string `json:"targetAgent"`            // name or id, as it is known
	Status       string `json:"status"`
	Message      string `json:"message"`
	InReplyTo    string `json:"inReplyTo,omitempty"` // id of the agent's frame. Addition
}

// ChildResponseContent is the content of childagent.response. Status: completed, failed,
// cancelled. The frame has no requestId.
type ChildResponseContent struct {
	ChildTaskID  string          `json:"childTaskId"`
	ParentTaskID string          `json:"parentTaskId,omitempty"` // absent: the child has none
	Status       string          `json:"status"`
	Result       json.RawMessage `json:"result,omitempty"`
	Error        string          `json:"error,omitempty"`
	Code         string          `json:"code,omitempty"`
}
