package asp

import "encoding/json"

// ServiceRegisteredContent is the content of service.registered.
type ServiceRegisteredContent struct {
	ID        string `json:"id"`
	ServiceID string `json:"serviceId"` // the same
	Name      string `json:"name"`
	Status    string `json:"status"`
	State     string `json:"state"` // the same in the other vocabulary. Addition
	Message   string `json:"message"`
}

// ServiceExecuteContent is the content of service.task.execute to a service.
type ServiceExecuteContent struct {
	ToolID       string          `json:"toolId"`
	FunctionName string          `json:"functionName"` // the same
	Params       json.RawMessage `json:"params"`
	Metadata     CallMetadata    `json:"metadata"`
}

// CallMetadata says where a call comes from. Priority: low, normal, high, or the
// caller's own word.
type CallMetadata struct {
	AgentID   string `json:"agentId,omitempty"`
	ClientID  string `json:"clientId,omitempty"`
	TaskID    string `json:"taskId,omitempty"` // the task within which the call is made. Addition
	Timestamp string `json:"timestamp"`
	Priority  string `json:"priority"`
	Deadline  string `json:"deadline,omitempty"` // Addition
}

// NotificationReceivedContent is the content of notification.received.
type NotificationReceivedContent struct {
	Message        string `json:"message"`
	NotificationID string `json:"notificationId,omitempty"` // id of the service's frame; absent if it had none
}
