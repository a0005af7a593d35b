package gen

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// aspInbound holds the messages of each role: their members, and groups of places of which one is required.
var aspInbound = map[string]map[string]aspMessage{
	"client": {
		asp.AgentListRequest: {content: node{"filters": filters()}},
		asp.TaskCreateRequest: {
			content: node{
				"agentId": anID, "agentName": anID, "capabilities": wordList(0), "taskType": aWord, "taskData": anyJSON,
				"queueTimeout": aWait, "timeout": aWait,
			},
			oneOf: [][]string{{"content.taskData"}},
			also: node{"anyOf": []any{
				there("content.agentId"), there("content.agentName"), within("content", "capabilities", wordList(1)),
				within("content", "taskData", node{"type": "object", "properties": node{"capabilities": notNull(wordList(1))}, "required": []string{"capabilities"}}),
			}},
		},
		asp.TaskStatusRequest: {content: node{"taskId": anID}, oneOf: [][]string{{"content.taskId"}}},
		asp.TaskCancelRequest: {content: node{"taskId": anID, "reason": aText, "agentName": anID}, oneOf: [][]string{{"content.taskId"}}},
		asp.TaskMessage: {
			content: node{"taskId": anID, "messageType": aWord, "message": anyJSON, "inputId": anID, "agentName": anID},
			oneOf:   [][]string{{"content.taskId"}, {"content.message"}},
		},
		asp.ServerListRequest: {content: node{"filters": filters("type")}},
		asp.ServerTools:       {content: node{"serverId": anID}, oneOf: [][]string{{"content.serverId"}}},
		asp.ToolExecute:       toolMessage,
		asp.ClientRegister: {content: node{
			"clientName": anID, "name": anID, "clientType": aWord, "type": aWord, "version": aWord, "capabilities": wordList(0), "description": aText,
			"status": aStatus, "clientId": anID, "resumeToken": anID, "lastSeq": upTo(1<<53 - 1),
		}},
		asp.ClientList: {content: node{"filters": filters("clientType", "type")}},
		asp.ClientMessage: {
			content: node{"targetClientId": anID, "target": objectOf(node{"id": anID}), "messageType": aWord, "data": anyJSON},
			oneOf:   [][]string{{"content.targetClientId", "content.target.id"}},
		},
		asp.Ping: {}, asp.Pong: {},
	},
	"agent": {
		asp.AgentRegister: {
			content: with(ofParticipant, node{"id": anID, "agentId": anID, "name": anID, "agentName": anID, "manifest": objectOf(node{"id": anID}), "tasks": wordList(0)}),
			oneOf:   [][]string{{"content.name", "content.agentName"}},
		},
		asp.AgentUnregister: {},
		asp.AgentTaskResult: resultMessage, asp.AgentResponse: resultMessage,
		asp.TaskStatus: {
			top: ofTask, content: node{"taskId": anID, "status": neededWord, "progress": anyJSON, "error": anyJSON},
			oneOf: [][]string{ofTaskID, {"content.status"}},
		},
		asp.TaskMessage: notificationMessage, asp.TaskNotification: notificationMessage,
		asp.TaskRequestMessage: {
			top: ofTask, content: node{"taskId": anID, "messageType": aWord, "message": anyJSON, "request": anyJSON, "options": anyJSON, "timeout": aWait},
			oneOf: [][]string{ofTaskID, {"content.message", "content.request"}},
		},
		asp.TaskError: {
			top: ofTask, content: node{"taskId": anID, "error": anyJSON, "code": anyJSON, "details": anyJSON},
			oneOf: [][]string{ofTaskID, {"content.error"}},
		},
		asp.AgentStatus:      statusMessage,
		asp.AgentAgentList:   {content: node{"filters": filters()}},
		asp.AgentServiceList: {content: node{"filters": filters("type")}},
		asp.ServiceToolsList: {content: node{"serviceId": anID, "service": anID}, oneOf: [][]string{{"content.serviceId", "content.service"}}},
		asp.ServiceExecute: {
			top: ofTask,
			content: node{
				"serviceId": anID, "service": anID, "toolId": anID, "toolName": anID, "functionName": anID, "operation": anID,
				"params": objectOf(nil), "parameters": objectOf(nil), "timeout": aWait, "priority": aWord, "taskId": anID, "parentTaskId": anID,
			},
			oneOf: [][]string{
				{"content.serviceId", "content.service"},
				{"content.toolId", "content.toolName", "content.functionName", "content.operation"},
			},
		},
		asp.AgentRequest: {
			top: ofTask,
			content: node{
				"targetAgent": anID, "targetAgentName": anID, "targetAgentId": anID, "taskType": aWord, "description": aText,
				"taskData": anyJSON, "timeout": aWait, "parentTaskId": anID, "taskId": anID,
			},
			oneOf: [][]string{{"content.targetAgent", "content.targetAgentName", "content.targetAgentId"}, {"content.taskData"}},
		},
		asp.AgentServerList: {content: node{"filters": filters("type")}},
		asp.MCPToolsList:    {content: node{"serverId": anID}, oneOf: [][]string{{"content.serverId"}}},
		asp.ToolExecute: {
			top: ofTask, content: with(toolMessage.content, node{"taskId": anID, "parentTaskId": anID}), oneOf: toolMessage.oneOf,
		},
		asp.Ping: {}, asp.Pong: {},
	},
	"service": {
		asp.ServiceRegister: {
			content: with(ofParticipant, node{
				"id": anID, "serviceId": anID, "name": anID, "serviceName": anID, "manifest": objectOf(node{"id": anID}),
				"tools": node{"type": []string{"array", "null"}, "maxItems": asp.MaxTools, "items": node{
					"type": "object", "properties": node{
						"id": anID, "name": anID, "description": aText, "inputSchema": objectOf(nil), "outputSchema": objectOf(nil), "idempotent": aFlag,
					},
					"anyOf": []any{there("id"), there("name")},
				}},
			}),
			oneOf: [][]string{{"content.name", "content.serviceName"}},
		},
		asp.ServiceUnregister: {},
		asp.ServiceTaskResult: {
			top: node{"taskId": anID, "requestId": anID}, content: node{"taskId": anID, "result": anyJSON, "error": anyJSON},
			oneOf: [][]string{{"content.taskId", "taskId", "requestId"}},
		},
		asp.ServiceTaskNotification: {
			top: ofTask, content: node{"taskId": anID, "notification": objectOf(node{"type": aWord, "message": aText, "data": anyJSON, "timestamp": anyJSON})},
			oneOf: [][]string{ofTaskID, {"content.notification"}},
		},
		asp.ServiceStatus: statusMessage,
		asp.ServiceNotified: {
			content: node{"notification": objectOf(nil), "metadata": objectOf(node{"clientId": anID})}, oneOf: [][]string{{"content.notification"}},
		},
		asp.ServiceError: {
			top: ofTask, content: node{"taskId": anID, "error": anyJSON, "code": anyJSON, "details": anyJSON}, oneOf: [][]string{{"content.error"}},
		},
		asp.Ping: {}, asp.Pong: {},
	},
}

// message is the schema of a message in short.
type aspMessage struct {
	top, content node       // members besides those of all messages
	oneOf        [][]string // places, of each group of which one is there and not null
	also         node
}

// Members.
var (
	anID       = node{"type": []string{"string", "null"}, "minLength": 1, "maxLength": asp.MaxID}
	aWord      = node{"type": []string{"string", "null"}, "maxLength": asp.MaxWord}
	neededWord = node{"type": []string{"string", "null"}, "minLength": 1, "maxLength": asp.MaxWord}
	aText      = node{"type": []string{"string", "null"}, "maxLength": asp.MaxText}
	aWait      = node{"type": []string{"number", "null"}, "minimum": 0, "maximum": asp.MaxWait, "description": "Milliseconds."}
	aFlag      = node{"type": []string{"boolean", "null"}}
	anyJSON    = node{"description": "Any JSON."}
	aStatus    = to("Status")

	ofTask        = node{"taskId": anID}
	ofTaskID      = []string{"content.taskId", "taskId"}
	ofParticipant = node{"capabilities": wordList(0), "description": aText, "status": aStatus}

	statusMessage = aspMessage{content: node{"status": aStatus, "message": aText}, oneOf: [][]string{{"content.status"}}}
	toolMessage   = aspMessage{
		content: node{"serverId": anID, "toolName": anID, "toolId": anID, "parameters": objectOf(nil), "params": objectOf(nil), "timeout": aWait, "priority": aWord},
		oneOf:   [][]string{{"content.serverId"}, {"content.toolName", "content.toolId"}},
	}
	resultMessage = aspMessage{
		top:     node{"taskId": anID, "requestId": anID},
		content: node{"taskId": anID, "result": anyJSON, "data": anyJSON, "error": anyJSON, "code": anyJSON, "details": anyJSON, "status": aWord},
		oneOf:   [][]string{{"content.taskId", "taskId", "requestId"}},
	}
	notificationMessage = aspMessage{
		top:     ofTask,
		content: node{"taskId": anID, "notificationType": aWord, "message": anyJSON, "data": anyJSON, "level": aWord},
		oneOf:   [][]string{ofTaskID, {"content.message"}},
	}
)

func wordList(least int) node {
	if least == 0 {
		return to("Words")
	}
	return with(aspWords, node{"minItems": least})
}

var aspWords = node{
	"type": []string{"array", "null"}, "maxItems": asp.MaxList, "items": node{"type": "string", "minLength": 1, "maxLength": asp.MaxID},
}

func upTo(most int64) node {
	return node{"type": []string{"number", "null"}, "minimum": 0, "maximum": most}
}

func objectOf(props node) node {
	n := node{"type": []string{"object", "null"}}
	if props != nil {
		n["properties"] = props
	}
	return n
}

func filters(types ...string) node {
	props := node{}
	for _, t := range types {
		props[t] = aWord
	}
	if len(props) == 0 {
		return to("Filters")
	}
	return with(to("Filters"), node{"properties": props})
}

// aspShared are definitions that messages from participants share.
var aspShared = map[string]node{
	"Status":  {"enum": []any{"online", "offline", "busy", "error", "initializing", "active", "inactive", "maintenance", nil}},
	"Words":   aspWords,
	"Filters": objectOf(node{"status": aWord, "capabilities": wordList(0), "name": node{"type": []string{"string", "null"}, "maxLength": asp.MaxID}}),
	"Sent": {
		"description": "Members of a participant's message.", "type": "object",
		"properties": node{
			"id":        with(anID, node{"description": "Of this message: what the answer has as requestId."}),
			"timestamp": node{"description": "Not needed, not read."},
		},
	},
}

// notNull returns the schema without null.
func notNull(n node) node {
	n = maps.Clone(n)
	if types, ok := n["type"].([]string); ok {
		n["type"] = types[0]
	}
	return n
}

// there requires a value at the path that is not null.
func there(path string) node {
	first, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return node{"properties": node{first: node{"not": node{"type": "null"}}}, "required": []string{first}}
	}
	return node{"properties": node{first: with(there(rest), node{"type": "object"})}, "required": []string{first}}
}

// within requires a member of an object that matches the schema.
func within(content, member string, schema node) node {
	return node{"required": []string{content}, "properties": node{content: node{
		"type": "object", "required": []string{member}, "properties": node{member: notNull(schema)},
	}}}
}

// aspSent returns the schema of a message that a role sends; typed are the members that name the type.
func aspSent(role, kind string, typed node) (node, error) {
	m, ok := aspInbound[role][kind]
	if !ok {
		return nil, fmt.Errorf("schema of %s from %s: its members are not known", kind, role)
	}
	all := []node{to("Sent")}
	for _, places := range m.oneOf {
		var any []node
		for _, p := range places {
			any = append(any, there(p))
		}
		if len(any) == 1 {
			all = append(all, any[0])
			continue
		}
		all = append(all, node{"anyOf": any})
	}
	if m.also != nil {
		all = append(all, m.also)
	}
	return node{"allOf": all, "properties": with(with(node{"content": objectOf(m.content)}, m.top), typed), "required": []string{"type"}}, nil
}

// aspNamed returns the schema of a message under a single name.
func aspNamed(kind, body string) node {
	return node{"allOf": []node{to(body)}, "properties": node{"type": node{"const": kind}}}
}

// aspInbox adds the messages that a role sends, under all of their names, and returns the
// names of their definitions.
func (d *definitions) aspInbox(role string, types asp.Types) ([]string, error) {
	var names []string
	of := slices.Collect(maps.Values(types.Aliases))
	for _, kind := range types.In {
		typed, body := node{"type": node{"const": kind}}, role+".body."+kind
		aliased := slices.Contains(of, kind)
		if aliased {
			typed = nil
		}
		s, err := aspSent(role, kind, typed)
		if err != nil {
			return nil, err
		}
		if aliased {
			d.messages.set(body, s)
			s = aspNamed(kind, body)
		}
		names = append(names, role+".in."+kind)
		d.messages.set(role+".in."+kind, s)
	}
	for _, alias := range slices.Sorted(maps.Keys(types.Aliases)) {
		of := types.Aliases[alias]
		names = append(names, role+".in."+alias)
		d.messages.set(role+".in."+alias, with(aspNamed(alias, role+".body."+of), node{"description": "Another name of " + of + "."}))
	}
	return names, nil
}
