package teamtools

import (
	"bytes"
	"encoding/json"
	"fmt"

	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
	"github.com/waggle-dev/waggle/services/tools/schema"
)

// Bounds of a call's arguments, in characters and items: they have to fit into an event of 256 KiB
// beside its other members.
const (
	maxMessage     = 20_000
	maxDescription = 1_500
	maxName        = 200
	maxTasks       = 20
	maxFiles       = 16
	maxTodos       = 50
	maxTodo        = 500
)

// spec is a tool of the team before it is offered.
type spec struct {
	name, title, description string
	schema                   node
}

// offer is a tool of the team as a member is offered it.
type offer struct {
	tools.Tool
	schema *schema.Schema
}

func (s spec) offer() (offer, error) {
	raw, err := json.Marshal(s.schema)
	if err != nil {
		return offer{}, fmt.Errorf("encode its schema: %w", err)
	}
	compiled, err := schema.Compile(raw)
	if err != nil {
		return offer{}, err
	}
	return offer{schema: compiled, Tool: tools.Tool{
		Name: s.name, Own: s.name, Kind: Kind, Server: Kind, Title: s.title, Description: s.description,
		InputSchema: raw, Idempotent: true, // the team does a call once and repeats the result
		Policy: event.ToolPolicy{Approval: event.ApprovalNever, Exempt: true}, // it reaches the team's own logs only
	}}, nil
}

// node is an object in a JSON Schema.
type node = map[string]any

func record(required []string, properties node) node {
	return node{"type": "object", "required": required, "properties": properties}
}

func text(limit int, about string) node {
	return node{"type": "string", "minLength": 1, "maxLength": limit, "description": about}
}

func choice(about string, names ...string) node {
	return node{"type": "string", "enum": names, "description": about}
}

// statuses is a choice that needs no explanation.
func statuses(names ...string) node { return node{"type": "string", "enum": names} }

func list(limit int, about string, of node) node {
	return node{"type": "array", "maxItems": limit, "items": of, "description": about}
}

// catalogue returns the tools that the team offers to a member. A member without colleagues gets no
// tool to write to them.
func catalogue(m Member) []spec {
	all := []spec{createTasks(m), updateTask(), listTasks(), updateTodos()}
	if len(m.Colleagues) > 0 {
		all = append(all, sendMessage(m))
	}
	return all
}

func colleagues(m Member) []string {
	names := make([]string, 0, len(m.Colleagues))
	for _, c := range m.Colleagues {
		names = append(names, c.Name)
	}
	return names
}

func sendMessage(m Member) spec {
	return spec{
		name: cmd.ToolSendMessage, title: "Write to a colleague",
		description: "Sends a message to a colleague in your team, who starts to work on it. You do not get the answer " +
			"as a result: colleagues who have something to tell you write to you.",
		schema: record([]string{"recipient_name", "content"}, node{
			"recipient_name": choice("the colleague", colleagues(m)...),
			"content":        text(maxMessage, "all that the colleague has to know; your conversation is not seen by others"),
			"message_type":   text(maxName, "kind of the message, for example task_assignment; left out: direct_message"),
		}),
	}
}

func files(about string) node {
	return list(maxFiles, about, record([]string{"file_path"}, node{
		"file_path": text(maxDescription, "path in the workspace"), "summary": text(maxDescription, "its contents"),
	}))
}

func createTasks(m Member) spec {
	task := record([]string{"description"}, node{
		"task_name":         text(maxName, "short and unique on the board"),
		"assignee_name":     choice("the member of the team who is to do it; yourself, if it is left out", append(colleagues(m), m.Name)...),
		"description":       text(maxDescription, "all that one has to know to do it"),
		"dependencies":      list(maxTasks, "names or ids of tasks that have to be completed before", text(maxName, "a task")),
		"file_deliverables": files("files that are to come of it"),
		"id":                text(maxName, "instead of task_name"),
	})
	task["anyOf"] = []node{{"required": []string{"task_name"}}, {"required": []string{"id"}}}
	tasks := list(maxTasks, "in the order in which they are to stand on the board", task)
	tasks["minItems"] = 1
	return spec{
		name: cmd.ToolCreateTasks, title: "Put tasks on the board",
		description: "Adds tasks to the task board of your team. Each task that depends on no other is announced to its " +
			"assignee at once, the others when what they depend on is completed.",
		schema: record([]string{"tasks"}, node{"tasks": tasks}),
	}
}

func updateTask() spec {
	return spec{
		name: cmd.ToolUpdateTask, title: "Change a task on the board",
		description: "Says how a task on the board of your team is now. Completing it lets those begin that depend on it.",
		schema: record([]string{"task_id", "new_status"}, node{
			"task_id": text(maxName, "id or name of the task"),
			"new_status": statuses(event.BoardNotStarted, event.BoardQueued, event.BoardInProgress,
				event.BoardCompleted, event.BoardBlocked, event.BoardFailed),
			"deliverables": files("files that have come of it"),
		}),
	}
}

func listTasks() spec {
	return spec{
		name: cmd.ToolListTasks, title: "Read the board",
		description: "Lists the tasks on the board of your team, with their ids, assignees and statuses.",
		schema:      record([]string{}, node{}),
	}
}

func updateTodos() spec {
	return spec{
		name: cmd.ToolUpdateTodos, title: "Keep a list of things to do",
		description: "Replaces your own list of things to do, which people can see. Give the whole list each time.",
		schema: record([]string{"todos"}, node{
			"todos": list(maxTodos, "the whole list", record([]string{"description", "status"}, node{
				"todo_id":     text(maxName, "left out: a number is given"),
				"description": text(maxTodo, "one line"),
				"status":      statuses(event.TodoPending, event.TodoInProgress, event.TodoDone),
			})),
		}),
	}
}

// object returns the arguments of a call. Models omit empty ones.
func object(arguments json.RawMessage) json.RawMessage {
	if b := bytes.TrimSpace(arguments); len(b) == 0 || string(b) == "null" {
		return json.RawMessage("{}")
	}
	return arguments
}

// Kind is the kind and the server of the tools of teams.
const Kind = "team"

// Member is who calls.
type Member struct {
	Tenant     id.Tenant
	Team       id.Entity
	Name       string // in the team
	AgentID    string
	RunID      string            // its active run
	Colleagues []event.Colleague // possible recipients of its messages
	Tools      []string          // of tool servers that it may use: <server>/<tool>, <server>/*
}
