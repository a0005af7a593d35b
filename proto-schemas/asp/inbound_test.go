package asp_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/waggle-dev/waggle/proto-schemas/asp"
)

// inbounds are the messages of each role: their members, and of which groups of places
// one has to be there.
var inbounds = map[string]map[string]message{
	"client": {
		asp.AgentListRequest: {content: node{"filters": filters()}},
		asp.TaskCreateRequest: {
			content: node{
				"agentId": name, "agentName": name, "capabilities": words(0), "taskType": word, "taskData": anything,
				"queueTimeout": wait, "timeout": wait,
			},
			oneOf: [][]string{{"content.taskData"}},
			also: node{"anyOf": []any{
				there("content.agentId"), there("content.agentName"), within("content", "capabilities", words(1)),
				within("content", "taskData", node{"type": "object", "properties": node{"capabilities": strict(words(1))}, "required": []string{"capabilities"}}),
			}},
		},
		asp.TaskStatusRequest: {content: node{"taskId": name}, oneOf: [][]string{{"content.taskId"}}},
		asp.TaskCancelRequest: {content: node{"taskId": name, "reason": text, "agentName": name}, oneOf: [][]string{{"content.taskId"}}},
		asp.TaskMessage: {
			content: node{"taskId": name, "messageType": word, "message": anything, "inputId": name, "agentName": name},
			oneOf:   [][]string{{"content.taskId"}, {"content.message"}},
		},
		asp.ServerListRequest: {content: node{"filters": filters("type")}},
		asp.ServerTools:       {content: node{"serverId": name}, oneOf: [][]string{{"content.serverId"}}},
		asp.ToolExecute:       mcpTool,
		asp.ClientRegister: {content: node{
			"clientName": name, "name": name, "clientType": word, "type": word, "version": word, "capabilities": words(0), "description": text,
			"status": status, "clientId": name, "resumeToken": name, "lastSeq": number(1<<53 - 1),
		}},
		asp.ClientList: {content: node{"filters": filters("clientType", "type")}},
		asp.ClientMessage: {
			content: node{"targetClientId": name, "target": object(node{"id": name}), "messageType": word, "data": anything},
			oneOf:   [][]string{{"content.targetClientId", "content.target.id"}},
		},
		asp.Ping: {}, asp.Pong: {},
	},
	"agent": {
		asp.AgentRegister: {
			content: with(peer, node{"id": name, "agentId": name, "name": name, "agentName": name, "manifest": object(node{"id": name}), "tasks": words(0)}),
			oneOf:   [][]string{{"content.name", "content.agentName"}},
		},
		asp.AgentUnregister: {},
		asp.AgentTaskResult: result, asp.AgentResponse: result,
		asp.TaskStatus: {
			top: ofTask, content: node{"taskId": name, "status": strictWord, "progress": anything, "error": anything},
			oneOf: [][]string{taskID, {"content.status"}},
		},
		asp.TaskMessage: notification, asp.TaskNotification: notification,
		asp.TaskRequestMessage: {
			top: ofTask, content: node{"taskId": name, "messageType": word, "message": anything, "request": anything, "options": anything, "timeout": wait},
			oneOf: [][]string{taskID, {"content.message", "content.request"}},
		},
		asp.TaskError: {
			top: ofTask, content: node{"taskId": name, "error": anything, "code": anything, "details": anything},
			oneOf: [][]string{taskID, {"content.error"}},
		},
		asp.AgentStatus:      setStatus,
		asp.AgentAgentList:   {content: node{"filters": filters()}},
		asp.AgentServiceList: {content: node{"filters": filters("type")}},
		asp.ServiceToolsList: {content: node{"serviceId": name, "service": name}, oneOf: [][]string{{"content.serviceId", "content.service"}}},
		asp.ServiceExecute: {
			top: ofTask,
			content: node{
				"serviceId": name, "service": name, "toolId": name, "toolName": name, "functionName": name, "operation": name,
				"params": object(nil), "parameters": object(nil), "timeout": wait, "priority": word, "taskId": name, "parentTaskId": name,
			},
			oneOf: [][]string{
				{"content.serviceId", "content.service"},
				{"content.toolId", "content.toolName", "content.functionName", "content.operation"},
			},
		},
		asp.AgentRequest: {
			top: ofTask,
			content: node{
				"targetAgent": name, "targetAgentName": name, "targetAgentId": name, "taskType": word, "description": text,
				"taskData": anything, "timeout": wait, "parentTaskId": name, "taskId": name,
			},
			oneOf: [][]string{{"content.targetAgent", "content.targetAgentName", "content.targetAgentId"}, {"content.taskData"}},
		},
		asp.AgentServerList: {content: node{"filters": filters("type")}},
		asp.MCPToolsList:    {content: node{"serverId": name}, oneOf: [][]string{{"content.serverId"}}},
		asp.ToolExecute: {
			top: ofTask, content: with(mcpTool.content, node{"taskId": name, "parentTaskId": name}), oneOf: mcpTool.oneOf,
		},
		asp.Ping: {}, asp.Pong: {},
	},
	"service": {
		asp.ServiceRegister: {
			content: with(peer, node{
				"id": name, "serviceId": name, "name": name, "serviceName": name, "manifest": object(node{"id": name}),
				"tools": node{"type": []string{"array", "null"}, "maxItems": asp.MaxTools, "items": node{
					"type": "object", "properties": node{
						"id": name, "name": name, "description": text, "inputSchema": object(nil), "outputSchema": object(nil), "idempotent": flag01,
					},
					"anyOf": []any{there("id"), there("name")},
				}},
			}),
			oneOf: [][]string{{"content.name", "content.serviceName"}},
		},
		asp.ServiceUnregister: {},
		asp.ServiceTaskResult: {
			top: node{"taskId": name, "requestId": name}, content: node{"taskId": name, "result": anything, "error": anything},
			oneOf: [][]string{{"content.taskId", "taskId", "requestId"}},
		},
		asp.ServiceTaskNotification: {
			top: ofTask, content: node{"taskId": name, "notification": object(node{"type": word, "message": text, "data": anything, "timestamp": anything})},
			oneOf: [][]string{taskID, {"content.notification"}},
		},
		asp.ServiceStatus: setStatus,
		asp.ServiceNotified: {
			content: node{"notification": object(nil), "metadata": object(node{"clientId": name})}, oneOf: [][]string{{"content.notification"}},
		},
		asp.ServiceError: {
			top: ofTask, content: node{"taskId": name, "error": anything, "code": anything, "details": anything}, oneOf: [][]string{{"content.error"}},
		},
		asp.Ping: {}, asp.Pong: {},
	},
}

// message is the schema of a message in short.
type message struct {
	top, content node       // members besides those of all messages
	oneOf        [][]string // places, of each group of which one is there and not null
	also         node
}

// Members.
var (
	name       = node{"type": []string{"string", "null"}, "minLength": 1, "maxLength": asp.MaxID}
	word       = node{"type": []string{"string", "null"}, "maxLength": asp.MaxWord}
	strictWord = node{"type": []string{"string", "null"}, "minLength": 1, "maxLength": asp.MaxWord}
	text       = node{"type": []string{"string", "null"}, "maxLength": asp.MaxText}
	wait       = node{"type": []string{"number", "null"}, "minimum": 0, "maximum": asp.MaxWait, "description": "Milliseconds."}
	flag01     = node{"type": []string{"boolean", "null"}}
	anything   = node{"description": "Any JSON."}
	status     = node{"enum": []any{"active", "inactive", "busy", "error", "maintenance", "online", "offline", nil}}

	ofTask = node{"taskId": name}
	taskID = []string{"content.taskId", "taskId"}
	peer   = node{"capabilities": words(0), "description": text, "status": status}

	setStatus = message{content: node{"status": status, "message": text}, oneOf: [][]string{{"content.status"}}}
	mcpTool   = message{
		content: node{"serverId": name, "toolName": name, "toolId": name, "parameters": object(nil), "params": object(nil), "timeout": wait, "priority": word},
		oneOf:   [][]string{{"content.serverId"}, {"content.toolName", "content.toolId"}},
	}
	result = message{
		top:     node{"taskId": name, "requestId": name},
		content: node{"taskId": name, "result": anything, "data": anything, "error": anything, "code": anything, "details": anything, "status": word},
		oneOf:   [][]string{{"content.taskId", "taskId", "requestId"}},
	}
	notification = message{
		top:     ofTask,
		content: node{"taskId": name, "notificationType": word, "message": anything, "data": anything, "level": word},
		oneOf:   [][]string{taskID, {"content.message"}},
	}
)

func words(least int) node {
	n := node{"type": []string{"array", "null"}, "maxItems": asp.MaxList, "items": node{"type": "string", "minLength": 1, "maxLength": asp.MaxID}}
	if least > 0 {
		n["minItems"] = least
	}
	return n
}

func number(most int64) node {
	return node{"type": []string{"number", "null"}, "minimum": 0, "maximum": most}
}

func object(props node) node {
	n := node{"type": []string{"object", "null"}}
	if props != nil {
		n["properties"] = props
	}
	return n
}

func filters(types ...string) node {
	props := node{"status": word, "capabilities": words(0), "name": node{"type": []string{"string", "null"}, "maxLength": asp.MaxID}}
	for _, t := range types {
		props[t] = word
	}
	return object(props)
}

// strict is the schema without null.
func strict(n node) node {
	n = maps.Clone(n)
	if types, ok := n["type"].([]string); ok {
		n["type"] = types[0]
	}
	return n
}

func with(a, b node) node {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// there says that something is at the path and not null.
func there(path string) node {
	first, rest, deeper := strings.Cut(path, ".")
	inner := node{"not": node{"type": "null"}}
	if deeper {
		inner = there(rest)
	}
	return node{"type": "object", "properties": node{first: inner}, "required": []string{first}}
}

// within says that a member of an object is there and as the schema says.
func within(object, member string, schema node) node {
	return node{"type": "object", "required": []string{object}, "properties": node{object: node{
		"type": "object", "required": []string{member}, "properties": node{member: strict(schema)},
	}}}
}

// inbound makes the schema of a message under one of its names.
func inbound(t *testing.T, role, kind, of string) node {
	t.Helper()
	m, ok := inbounds[role][of]
	if !ok {
		t.Fatalf("there is no schema of %s from %s", of, role)
	}
	props := with(node{
		"type":      node{"const": kind},
		"id":        with(name, node{"description": "Of this message: what the answer has as requestId."}),
		"timestamp": node{"description": "Not needed, not read."},
		"content":   object(m.content),
	}, m.top)
	all := []any{}
	for _, places := range m.oneOf {
		var any []any
		for _, p := range places {
			any = append(any, there(p))
		}
		all = append(all, node{"anyOf": any})
	}
	if m.also != nil {
		all = append(all, m.also)
	}
	out := node{"description": "From the " + role + ".", "properties": props, "required": []string{"type"}}
	if kind != of {
		out["description"] = "From the " + role + ": another name of " + of + "."
	}
	if len(all) > 0 {
		out["allOf"] = all
	}
	return out
}
