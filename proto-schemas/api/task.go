package api

import (
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// AgentList lists agents of the swarm.
type AgentList struct {
	Agents []command.Participant `json:"agents"`
	Next   string                `json:"next,omitempty"` // the parameter before of the next page
	More   bool                  `json:"more,omitempty"` // more follow
}

// ServiceList lists providers of tools that are connected to the swarm.
type ServiceList struct {
	Services []command.Participant `json:"services"`
	Next     string                `json:"next,omitempty"` // the parameter before of the next page
	More     bool                  `json:"more,omitempty"` // more follow
}

// ClientList lists clients of the swarm.
type ClientList struct {
	Clients []command.Participant `json:"clients"`
	Next    string                `json:"next,omitempty"` // the parameter before of the next page
	More    bool                  `json:"more,omitempty"` // more follow
}

// ServerList lists MCP servers.
type ServerList struct {
	Servers []command.Participant `json:"servers"`
	Next    string                `json:"next,omitempty"` // the parameter before of the next page
	More    bool                  `json:"more,omitempty"` // more follow
}

// TaskSummary is one task in a list.
type TaskSummary struct {
	command.TaskView
	TaskType  string    `json:"task_type,omitempty"`
	Released  string    `json:"released,omitempty"` // why the last agent that lost the task did: agent_lost, forgotten, silent, not_delivered
	UpdatedAt time.Time `json:"updated_at"`
	LastSeq   uint64    `json:"last_seq"` // of the newest event
}

// TaskPage is a page of the list of tasks, the newest change first.
type TaskPage struct {
	Tasks []TaskSummary `json:"tasks"`
	Next  string        `json:"next"` // the parameter before of the next page; empty = no further tasks
	More  bool          `json:"more"` // more tasks follow
}

// TaskRecord is one task as the task service reports it.
type TaskRecord struct {
	TaskSummary
	Task event.TaskCreatedData `json:"task"` // input
}

// TaskDetail is one task with its newest events.
type TaskDetail struct {
	TaskRecord
	Events []json.RawMessage `json:"events"` // canonical events (schema event), oldest first
}

// CancelTask is the optional body of a cancellation.
type CancelTask struct {
	Reason string `json:"reason,omitempty"`
}

// TaskMessage is a message to the agent of a task.
type TaskMessage struct {
	ID      string          `json:"id,omitempty"` // the client's id for it: a repeat has the same and gets the same response
	Message json.RawMessage `json:"message"`      // any JSON but null, for the agent; the answer to its open question, if it has one
}

// NewTask is a task for an agent of the swarm, which is named by its id, its name or its capabilities.
type NewTask struct {
	ID           string          `json:"id,omitempty"` // the client's id for it: a repeat has the same and gets the same response
	AgentID      string          `json:"agent_id,omitempty"`
	AgentName    string          `json:"agent_name,omitempty"`
	Capabilities []string        `json:"capabilities,omitempty"`
	TaskType     string          `json:"task_type,omitempty"`
	Data         json.RawMessage `json:"data"`                 // any JSON, for the agent
	QueueMS      int64           `json:"queue_ms,omitempty"`   // how long it may wait for an agent; absent = the server's setting
	TimeoutMS    int64           `json:"timeout_ms,omitempty"` // absent = unlimited
}

// TaskName is the id of a new task.
type TaskName struct {
	TaskID string `json:"task_id"`
}
