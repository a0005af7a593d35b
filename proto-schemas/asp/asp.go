// Package asp holds the wire types of the Agent Swarm Protocol: the names of its
// messages for each of its three roles (client, agent, service), one Go type for the
// content of each message of the server, one JSON Schema for every message, and the
// examples of the protocol's description.
//
// The protocol exists in two forms, the one that is described and the one that its
// SDKs speak. Both are accepted, and what the server sends has the members of both.
// Names of the other form are in Aliases.
//
// The schemas are normative. Inbound schemas allow members that they do not name;
// outbound schemas do not, because they say exactly what this version may send.
// Clients should pass over unknown members all the same.
package asp

import (
	"bytes"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Messages of clients. ClientMessage and ServerTools go both ways.
const (
	AgentListRequest   = "client.agent.list.request"
	TaskCreateRequest  = "client.agent.task.create.request"
	TaskStatusRequest  = "client.agent.task.status.request"
	TaskCancelRequest  = "client.agent.task.cancel.request" // addition
	TaskMessage        = "task.message"                     // from agents, too
	ServerListRequest  = "client.mcp.server.list.request"
	ServerTools        = "mcp.server.tools"
	ToolExecute        = "mcp.tool.execute" // from agents, too
	ClientRegister     = "client.register"
	ClientList         = "client.list"
	ClientMessage      = "client.message"
	Ping               = "ping" // of all roles, both ways
	Pong               = "pong" // of all roles, both ways
	taskStatusOfTheSDK = "client.agent.task.status"
)

// Messages to clients.
const (
	ClientWelcome      = "orchestrator.client.welcome"
	AgentListResponse  = "client.agent.list.response"
	TaskCreateResponse = "client.agent.task.create.response"
	TaskResult         = "client.agent.task.result"
	TaskStatusResponse = "client.agent.task.status.response"
	TaskCancelResponse = "client.agent.task.cancel.response" // addition
	TaskNotification   = "task.notification"                 // from agents, too
	TaskError          = "task.error"                        // from agents, too
	TaskRequestMessage = "task.requestmessage"               // from agents, too
	TaskMessageSent    = "task.message.sent"
	ChildTaskCreated   = "task.childtask.created"
	ChildTaskStatus    = "task.childtask.status"
	ServiceStarted     = "service.started"
	ServiceNotified    = "service.notification" // to agents and from services, too
	ServiceCompleted   = "service.completed"
	ServerListResponse = "client.mcp.server.list.response"
	MCPTaskExecution   = "mcp.task.execution"
	RegisterResponse   = "client.register.response"
	ClientListResponse = "client.list.response"
	MessageSent        = "message.sent"
	Error              = "error" // to all roles
)

// Messages of agents.
const (
	AgentRegister    = "agent.register"
	AgentUnregister  = "agent.unregister" // addition
	AgentTaskResult  = "agent.task.result"
	TaskStatus       = "task.status"
	AgentStatus      = "agent.status"
	AgentAgentList   = "agent.agent.list.request"
	AgentServiceList = "agent.service.list.request"
	ServiceToolsList = "service.tools.list"
	ServiceExecute   = "service.task.execute" // to services, too
	AgentRequest     = "agent.request"
	AgentResponse    = "agent.response"
	AgentServerList  = "agent.mcp.servers.list"
	MCPToolsList     = "mcp.tools.list"
)

// Messages to agents.
const (
	Welcome               = "orchestrator.welcome" // to services, too
	AgentRegistered       = "agent.registered"
	AgentUnregistered     = "agent.unregistered"   // addition
	AgentStatusUpdated    = "agent.status.updated" // addition
	TaskExecute           = "task.execute"
	TaskCancel            = "task.cancel" // addition
	TaskMessageResponse   = "task.messageresponse"
	TaskMessageReceived   = "task.message.received"
	AgentAgentListReply   = "agent.agent.list.response"
	AgentListReply        = "agent.list.response" // to the request of the described form
	AgentServiceListReply = "agent.service.list.response"
	ServiceToolsReply     = "service.tools.list.response"
	ServiceExecuteReply   = "service.task.execute.response"
	ChildAccepted         = "childagent.request.accepted"
	ChildResponse         = "childagent.response"
	AgentServerListReply  = "agent.mcp.servers.list.result"
	ServerListReply       = "mcp.servers.list" // to the request of the described form
	MCPToolsReply         = "mcp.tools.list.result"
	ToolExecuteReply      = "mcp.tool.execute.result"
)

// Messages of services.
const (
	ServiceRegister         = "service.register"
	ServiceUnregister       = "service.unregister" // addition
	ServiceTaskResult       = "service.task.result"
	ServiceTaskNotification = "service.task.notification"
	ServiceStatus           = "service.status"
	ServiceError            = "service.error"
)

// Messages to services.
const (
	ServiceRegistered    = "service.registered"
	ServiceUnregistered  = "service.unregistered" // addition
	NotificationReceived = "notification.received"
	ServiceStatusUpdated = "service.status.updated"
)

// Types are the messages of one role.
type Types struct {
	In      []string          // from the participant, without aliases
	Out     []string          // to the participant
	Aliases map[string]string // other names of messages in In
}

// The messages of each role.
var (
	Client = Types{
		In: []string{
			AgentListRequest, TaskCreateRequest, TaskStatusRequest, TaskCancelRequest, TaskMessage, ServerListRequest, ServerTools,
			ToolExecute, ClientRegister, ClientList, ClientMessage, Ping, Pong,
		},
		Out: []string{
			ClientWelcome, AgentListResponse, TaskCreateResponse, TaskResult, TaskStatusResponse, TaskCancelResponse, TaskNotification,
			TaskError, TaskRequestMessage, TaskMessageSent, ChildTaskCreated, ChildTaskStatus, ServiceStarted, ServiceNotified,
			ServiceCompleted, ServerListResponse, ServerTools, MCPTaskExecution, RegisterResponse, ClientListResponse, ClientMessage,
			MessageSent, Pong, Error,
		},
		Aliases: map[string]string{taskStatusOfTheSDK: TaskStatusRequest},
	}
	Agent = Types{
		In: []string{
			AgentRegister, AgentUnregister, AgentTaskResult, TaskStatus, TaskMessage, TaskRequestMessage, TaskError, TaskNotification,
			AgentStatus, AgentAgentList, AgentServiceList, ServiceToolsList, ServiceExecute, AgentRequest, AgentResponse,
			AgentServerList, MCPToolsList, ToolExecute, Ping, Pong,
		},
		Out: []string{
			Welcome, AgentRegistered, AgentUnregistered, AgentStatusUpdated, TaskExecute, TaskCancel, TaskMessageResponse,
			TaskMessageReceived, AgentAgentListReply, AgentListReply, AgentServiceListReply, ServiceToolsReply, ServiceExecuteReply,
			ServiceNotified, ChildAccepted, ChildResponse, AgentServerListReply, ServerListReply, MCPToolsReply, ToolExecuteReply,
			Ping, Pong, Error,
		},
		Aliases: map[string]string{
			"task.result": AgentTaskResult, "agent.status.update": AgentStatus, "agent.list.request": AgentAgentList,
			"service.request": ServiceExecute, "agent.task.request": AgentRequest, "mcp.servers.list.request": AgentServerList,
			"mcp.tools.list.request": MCPToolsList, "mcp.tool.execute.request": ToolExecute,
		},
	}
	Service = Types{
		In: []string{
			ServiceRegister, ServiceUnregister, ServiceTaskResult, ServiceTaskNotification, ServiceStatus, ServiceNotified,
			ServiceError, Ping, Pong,
		},
		Out: []string{
			Welcome, ServiceRegistered, ServiceUnregistered, ServiceExecute, NotificationReceived, ServiceStatusUpdated, Ping, Pong, Error,
		},
	}
)

// Limits of what a participant may send.
const (
	MaxID    = 128        // characters of an id or a name: what the bus allows for an id
	MaxWord  = 64         // characters of a type, a level or a status: longer than any of the protocol
	MaxText  = 10_000     // characters of a text for people: as in the other dialects
	MaxList  = 100        // capabilities of a participant or a filter
	MaxTools = 256        // tools of a service
	MaxWait  = 86_400_000 // timeouts in milliseconds: a day
)

// Frame is a message of the server. ID is its own, except where another one is given
// by the protocol: task.execute has the task's and service.task.execute the call's.
//
// RequestID is the id of the message that it answers. Seq is the position of the event
// that it reports in what its client is told; frames that report no such event have none.
type Frame struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	RequestID string `json:"requestId,omitempty"`
	Seq       uint64 `json:"seq,omitempty"`
	Timestamp string `json:"timestamp"`
	Content   any    `json:"content"`

	Watched *Watched `json:"watched,omitempty"` // the frame is about a run that a client watches
}

// Watched says where in a log that a client watches a frame comes from.
type Watched struct {
	Run    string `json:"run"`              // <kind>/<id>
	Seq    uint64 `json:"seq,omitempty"`    // of the event in that log; on the last of its frames
	Member string `json:"member,omitempty"` // of a team: path of names from the team that is watched
}

// Encode returns the frame as JSON on one line: UTF-8, and without the escapes for
// HTML that encoding/json adds by default. It fails only if a raw member is not JSON.
func (f Frame) Encode() ([]byte, error) {
	b, err := plainjson.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s frame: %w", f.Type, err)
	}
	return bytes.ToValidUTF8(b, []byte("\ufffd")), nil
}

// Stamp writes a time as frames have it: RFC 3339, UTC, milliseconds; the zero time as
// nothing.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
