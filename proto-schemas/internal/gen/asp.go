package gen

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// aspContents holds the content types of the server's messages to each role.
var aspContents = map[string]map[string]any{
	"client": {
		asp.ClientWelcome:      asp.ClientWelcomeContent{},
		asp.AgentListResponse:  asp.AgentListContent{},
		asp.TaskCreateResponse: asp.TaskCreatedContent{},
		asp.TaskResult:         asp.TaskResultContent{},
		asp.TaskStatusResponse: asp.TaskStatusContent{},
		asp.TaskCancelResponse: asp.TaskCancelContent{},
		asp.TaskNotification:   asp.TaskNotificationContent{},
		asp.TaskError:          asp.TaskErrorContent{},
		asp.TaskRequestMessage: asp.TaskQuestionContent{},
		asp.TaskMessageSent:    asp.TaskMessageSentContent{},
		asp.ChildTaskCreated:   asp.ChildTaskCreatedContent{},
		asp.ChildTaskStatus:    asp.ChildTaskStatusContent{},
		asp.ServiceStarted:     asp.ServiceStartedContent{},
		asp.ServiceNotified:    asp.ServiceNotificationContent{},
		asp.ServiceCompleted:   asp.ServiceCompletedContent{},
		asp.ServerListResponse: asp.ServerListContent{},
		asp.ServerTools:        asp.ServerToolsContent{},
		asp.MCPTaskExecution:   asp.MCPExecutionContent{},
		asp.RegisterResponse:   asp.RegisterResponseContent{},
		asp.ClientListResponse: asp.ClientListContent{},
		asp.ClientMessage:      asp.ClientMessageContent{},
		asp.MessageSent:        asp.MessageSentContent{},
		asp.Pong:               asp.PulseContent{},
		asp.Error:              asp.ErrorContent{},
	},
	"agent": {
		asp.Welcome:               asp.WelcomeContent{},
		asp.AgentRegistered:       asp.AgentRegisteredContent{},
		asp.AgentUnregistered:     asp.UnregisteredContent{},
		asp.AgentStatusUpdated:    asp.StatusUpdatedContent{},
		asp.TaskExecute:           asp.TaskExecuteContent{},
		asp.TaskCancel:            asp.CancelTaskContent{},
		asp.TaskMessageResponse:   asp.TaskMessageResponseContent{},
		asp.TaskMessageReceived:   asp.TaskMessageReceivedContent{},
		asp.AgentAgentListReply:   asp.AgentListContent{},
		asp.AgentListReply:        asp.AgentListContent{},
		asp.AgentServiceListReply: asp.ServiceListContent{},
		asp.ServiceToolsReply:     asp.ServiceToolsContent{},
		asp.ServiceExecuteReply:   asp.ServiceExecuteReplyContent{},
		asp.ServiceNotified:       asp.ServiceNotificationContent{},
		asp.ChildAccepted:         asp.ChildAcceptedContent{},
		asp.ChildResponse:         asp.ChildResponseContent{},
		asp.AgentServerListReply:  asp.ServerListContent{},
		asp.ServerListReply:       asp.ServerListContent{},
		asp.MCPToolsReply:         asp.ServerToolsContent{},
		asp.ToolExecuteReply:      asp.MCPExecutionContent{},
		asp.Ping:                  asp.PulseContent{},
		asp.Pong:                  asp.PulseContent{},
		asp.Error:                 asp.ErrorContent{},
	},
	"service": {
		asp.Welcome:              asp.WelcomeContent{},
		asp.ServiceRegistered:    asp.ServiceRegisteredContent{},
		asp.ServiceUnregistered:  asp.UnregisteredContent{},
		asp.ServiceExecute:       asp.ServiceExecuteContent{},
		asp.NotificationReceived: asp.NotificationReceivedContent{},
		asp.ServiceStatusUpdated: asp.StatusUpdatedContent{},
		asp.Ping:                 asp.PulseContent{},
		asp.Pong:                 asp.PulseContent{},
		asp.Error:                asp.ErrorContent{},
	},
}

// aspUnsent are members of the description's examples that no frame has, and why.
var aspUnsent = map[string]string{
	"client service.started content.estimatedDuration": "the duration of a call is unknown before its end",
	"service error content.stack":                      "where an error happened in the server is for its log",
}

// aspRoles are the roles of the swarm, in the order of the protocol's description.
var aspRoles = []struct {
	name  string
	types asp.Types
}{{"client", asp.Client}, {"agent", asp.Agent}, {"service", asp.Service}}

// aspBundle returns the bundle of the Agent Swarm Protocol. The definition of a message is
// called <role>.in.<type>, or <role>.out.<type>: a type may mean something else to another
// role.
func aspBundle(c *comments) ([]byte, error) {
	d, shown := newDefinitions(c), newExamples(aspUnsent)
	d.closed, d.finish = true, shown.finish
	frames, err := aspExamples(shown)
	if err != nil {
		return nil, err
	}
	var root []string
	for _, role := range aspRoles {
		in, err := d.aspInbox(role.name, role.types)
		if err != nil {
			return nil, err
		}
		out := d.aspOutbox(role.name, frames, shown)
		d.messages.set(role.name+".in", anyOf("From the "+role.name+".", in))
		d.messages.set(role.name+".out", anyOf("To the "+role.name+".", out))
		root = append(root, role.name+".in", role.name+".out")
	}
	d.aspParts()
	return d.encode("asp", "Messages of the Agent Swarm Protocol", root)
}

// aspFrame is a message of the server with the content of the example, which may be missing.
type aspFrame struct {
	role, kind string
	content    reflect.Type
	example    any
}

// aspExamples returns all messages of the server, and reads their examples.
func aspExamples(shown *examples) ([]aspFrame, error) {
	var all []aspFrame
	for _, role := range aspRoles {
		for _, kind := range role.types.Out {
			content, ok := aspContents[role.name][kind]
			if !ok {
				return nil, fmt.Errorf("schema of %s to %s: its content is not known", kind, role.name)
			}
			example, err := readExample(asp.Examples, "examples/"+role.name+"/out/"+kind+".json")
			if err != nil {
				return nil, err
			}
			f := aspFrame{role.name, kind, reflect.TypeOf(content), example["content"]}
			shown.message = role.name + " " + kind
			if err := shown.read(f.content, "content", f.example); err != nil {
				return nil, err
			}
			all = append(all, f)
		}
	}
	return all, shown.unread()
}

// aspOutbox adds the messages to a role, and returns the names of their definitions.
func (d *definitions) aspOutbox(role string, frames []aspFrame, shown *examples) []string {
	var names []string
	frame := "Frame"
	if role == "client" {
		frame = "ClientFrame"
	}
	for _, f := range frames {
		if f.role != role {
			continue
		}
		props := node{"type": node{"const": f.kind}, "content": with(d.ref(f.content), shown.stricter(f.content, f.example))}
		if f.kind == asp.ChildAccepted || f.kind == asp.ChildResponse {
			props["requestId"] = false
		}
		names = append(names, role+".out."+f.kind)
		d.messages.set(role+".out."+f.kind, shut(node{"allOf": []node{to(frame)}, "properties": props}))
	}
	return names
}

// aspParts adds what messages have in common.
func (d *definitions) aspParts() {
	maps.Copy(d.types, aspShared)
	d.types["Frame"] = node{
		"description": "A message of the server.", "type": "object",
		"properties": node{
			"id":        node{"type": "string", "description": "Of this frame. A frame that comes again has the same."},
			"type":      node{"type": "string"},
			"timestamp": stamp(),
			"requestId": node{"type": "string", "description": "The id of the message that this one answers."},
			"content":   node{"type": "object"},
		},
		"required": []string{"id", "type", "timestamp", "content"},
	}
	watched := d.ref(reflect.TypeFor[asp.Watched]())
	watched["description"] = "Where the frame is from, if it is about a run that the client watches: it has no seq then. Addition."
	d.types["ClientFrame"] = node{
		"description": "A message of the server to a client.", "allOf": []node{to("Frame")},
		"properties": node{
			"seq": node{"type": "integer", "minimum": 1, "description": "Position of the event in what the client is told. " +
				"Absent on frames that report no such event, and on all but the last frame of an event. Addition."},
			"watched": watched,
		},
	}
}

// stamp is a time as frames have it. Examples have no milliseconds.
func stamp() node {
	return node{"description": "RFC 3339, UTC, milliseconds.", "type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$`}
}
