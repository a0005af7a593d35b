package asp

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	"github.com/waggle-dev/waggle/internal/eventdata"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Words of the protocol for what has become of something.
const (
	statusAccepted  = "accepted"
	statusCancelled = "cancelled"
	statusCompleted = "completed"
	statusCreated   = "created"
	statusDelivered = "delivered" // the task service's own
	statusQueued    = "queued"
	statusReceived  = "received"
	statusRunning   = "running"
	statusSent      = "sent"
	statusSuccess   = "success"
)

// outMeans says of every message to a participant when it is sent.
var outMeans = map[string]map[string]string{
	command.ParticipantClient: {
		wire.ClientWelcome:      "the first frame",
		wire.AgentListResponse:  "answers client.agent.list.request",
		wire.TaskCreateResponse: "a task was accepted: answers client.agent.task.create.request",
		wire.TaskResult:         "the end of a task, whatever it is; requestId is that of its creation",
		wire.TaskStatusResponse: "answers client.agent.task.status.request",
		wire.TaskCancelResponse: "answers client.agent.task.cancel.request",
		wire.TaskNotification:   "a notice of the agent; with the type status also: the task waits, has an agent, lost it, or a question expired",
		wire.TaskError:          "a task failed; the client.agent.task.result follows",
		wire.TaskRequestMessage: "an agent asks; task.message answers",
		wire.TaskMessageSent:    "answers task.message",
		wire.ChildTaskCreated:   "an agent gave a task to another",
		wire.ChildTaskStatus:    "such a task has ended",
		wire.ServiceStarted:     "an agent calls a service",
		wire.ServiceNotified:    "the service says how the call is",
		wire.ServiceCompleted:   "the outcome of the call",
		wire.ServerListResponse: "answers client.mcp.server.list.request",
		wire.ServerTools:        "answers mcp.server.tools",
		wire.MCPTaskExecution:   "answers mcp.tool.execute; and the outcome of a call by the agent of a task",
		wire.RegisterResponse:   "answers client.register",
		wire.ClientListResponse: "answers client.list",
		wire.ClientMessage:      "a message of another client",
		wire.MessageSent:        "answers client.message",
		wire.Pong:               "answers ping",
		wire.Error:              "a message could not be carried out",
	},
	command.ParticipantAgent: {
		wire.Welcome:               "the first frame",
		wire.AgentRegistered:       "answers agent.register",
		wire.AgentUnregistered:     "answers agent.unregister",
		wire.AgentStatusUpdated:    "answers agent.status",
		wire.TaskExecute:           "do this task",
		wire.TaskCancel:            "the task is cancelled or no longer the agent's: it need not go on",
		wire.TaskMessageResponse:   "the client says something; with requestId: the answer to task.requestmessage",
		wire.TaskMessageReceived:   "answers task.message and task.notification",
		wire.AgentAgentListReply:   "answers agent.agent.list.request",
		wire.AgentListReply:        "answers agent.list.request",
		wire.AgentServiceListReply: "answers agent.service.list.request",
		wire.ServiceToolsReply:     "answers service.tools.list",
		wire.ServiceExecuteReply:   "answers service.task.execute",
		wire.ServiceNotified:       "a service reported the progress of a call",
		wire.ChildAccepted:         "a child task was accepted; without requestId",
		wire.ChildResponse:         "a child task has ended; without requestId",
		wire.AgentServerListReply:  "answers agent.mcp.servers.list",
		wire.ServerListReply:       "answers mcp.servers.list.request",
		wire.MCPToolsReply:         "answers mcp.tools.list",
		wire.ToolExecuteReply:      "answers mcp.tool.execute",
		wire.Ping:                  "a sign of life is wanted",
		wire.Pong:                  "answers ping",
		wire.Error:                 "a message could not be carried out",
	},
	command.ParticipantService: {
		wire.Welcome:              "the first frame",
		wire.ServiceRegistered:    "answers service.register",
		wire.ServiceUnregistered:  "answers service.unregister",
		wire.ServiceExecute:       "run this tool",
		wire.NotificationReceived: "answers service.task.notification and service.notification",
		wire.ServiceStatusUpdated: "answers service.status",
		wire.Ping:                 "a sign of life is wanted",
		wire.Pong:                 "answers ping",
		wire.Error:                "a message could not be carried out",
	},
}

// with decodes the event's data for f.
func with[T event.Data](f func(event.Event, T) []wire.Frame) writer {
	return func(e event.Event) ([]wire.Frame, error) {
		d, err := eventdata.As[T](e)
		if err != nil {
			return nil, err
		}
		return f(e, d), nil
	}
}

// frames returns one frame.
func frames(kind, requestID string, content any) []wire.Frame {
	return []wire.Frame{{Type: kind, RequestID: requestID, Content: content}}
}

// refused tells that a command had no effect, if its frame can be answered.
func refused(_ event.Event, d event.CommandRefusedData) []wire.Frame {
	request := requestOf(d.CommandID)
	if request == "" {
		return nil
	}
	return frames(wire.Error, request, wire.ErrorContent{
		Error: first(d.Message, fault.Lookup(fault.Code(d.Code)).Message), Code: d.Code, Field: d.Field,
	})
}

// quoted returns a text as JSON.
func quoted(s string) json.RawMessage { return strict.Encoded(s) }

// called tells how a service says that a call is.
func called(e event.Event, d event.CallNotifiedData) []wire.Frame {
	at := d.At
	if at.IsZero() {
		at = e.Time
	}
	return frames(wire.ServiceNotified, "", wire.ServiceNotificationContent{
		ServiceID: d.Server, ServiceName: first(d.ServerName, d.Server), TaskID: d.TaskID, ServiceTaskID: d.CallID,
		NotificationType: d.NotificationType, Message: d.Message, Data: d.Data,
		Notification: wire.Notification{Type: d.NotificationType, Message: d.Message, Timestamp: wire.Stamp(at), Data: d.Data},
		Timestamp:    wire.Stamp(at),
	})
}

// executed is the outcome of a call of an MCP server's tool within a task.
func executed(d event.CallFinishedData) wire.MCPExecutionContent {
	return wire.MCPExecutionContent{
		ServerID: d.Server, ServerName: d.ServerName, ToolName: d.Tool, TaskID: d.TaskID, Status: d.Status,
		Result: d.Result, Error: why(d.Status, d.Error, d.Code), Code: d.Code, ExecutionTime: d.DurationMS,
	}
}

// why returns the error of something that did not succeed: it is never silent.
func why(status, text, code string) string {
	if status == statusSuccess || status == statusCompleted {
		return ""
	}
	return first(text, fault.Lookup(fault.Code(code)).Message)
}

// writer makes frames of one type of event. The frames have type, content and, where
// they differ from the usual, id and requestId.
type writer func(event.Event) ([]wire.Frame, error)
