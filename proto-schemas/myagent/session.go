package myagent

import "encoding/json"

// EchoMeta is the metadata of user.message and user.solve_tasks to the client: what
// was asked, by whom, and as which run it will be answered.
type EchoMeta struct {
	Context
	MessageID      string          `json:"message_id"`
	By             string          `json:"by,omitempty"`
	ClientID       string          `json:"client_id,omitempty"`
	Queued         int             `json:"queued"`           // runs ahead of this one
	Sender         string          `json:"sender,omitempty"` // the sender, if not a user: the route of a member of a team, or the system
	ConfirmPlan    *bool           `json:"confirm_plan,omitempty"`
	OnBusy         string          `json:"on_busy,omitempty"`
	MaxConcurrent  int             `json:"max_concurrent,omitempty"`
	TimeoutSeconds int             `json:"timeout_seconds,omitempty"`
	Extra          json.RawMessage `json:"extra,omitempty"` // the other metadata that came with it, an object
}

// SessionCreatedContent is the content of agent.session_created.
type SessionCreatedContent struct {
	SessionID string `json:"session_id"`
	CreatedAt string `json:"created_at"`
}

// SessionCreatedMeta is the metadata of agent.session_created.
type SessionCreatedMeta struct {
	Context
	ServerVersion    string   `json:"server_version"`
	Capabilities     []string `json:"server_capabilities"`
	TTLHours         float64  `json:"session_ttl_hours"`
	MaxConcurrent    int      `json:"max_concurrent_tasks"`
	HeartbeatSeconds float64  `json:"heartbeat_interval_seconds"`
	ClientID         string   `json:"client_id,omitempty"` // Addition
	Language         string   `json:"language,omitempty"`  // Addition
}

// SessionEndMeta is the metadata of agent.session_end. Reasons: user_request, timeout,
// error, completion, deleted (addition). Completion: success, partial, failed.
type SessionEndMeta struct {
	Context
	Reason        string `json:"reason"`
	Open          bool   `json:"session_open"` // a new message continues the session. Addition
	Duration      *int64 `json:"duration_seconds,omitempty"`
	TotalMessages *int   `json:"total_messages,omitempty"`
	TotalTasks    *int   `json:"total_tasks,omitempty"`
	Completion    string `json:"completion_status,omitempty"`
	Stats         *Stats `json:"stats,omitempty"`
}

// Stats is what a session consumed.
type Stats struct {
	Spent
	ToolCalls int `json:"tool_calls"`
}

// StateExportedMeta is the metadata of agent.state_exported.
type StateExportedMeta struct {
	Context
	ExportedAt   string            `json:"exported_at"`
	ValidUntil   string            `json:"valid_until"`
	SessionState json.RawMessage   `json:"session_state"`          // an object: stage, plan_context, current_task_id, completed_task_ids, agent_state
	SignedState  json.RawMessage   `json:"signed_state,omitempty"` // an object: state, timestamp, version, checksum, signature
	LastSeq      uint64            `json:"last_seq"`               // the newest event that the state knows. Addition
	StateHash    string            `json:"state_hash,omitempty"`   // to compare with client_state_hash. Addition
	StateSize    int               `json:"state_size_bytes"`       // of signed_state
	History      []json.RawMessage `json:"history,omitempty"`      // the newest frames, oldest first. Addition
}

// StateRestoredMeta is the metadata of agent.state_restored. Integrity: verified.
type StateRestoredMeta struct {
	Context
	RestoredAt   string   `json:"restored_at"`
	Stage        string   `json:"previous_stage"` // planning, confirmation, solving, aggregation, idle
	Integrity    string   `json:"state_integrity"`
	OriginalID   string   `json:"original_session_id"` // the session's own, which never changes
	ExportedAt   string   `json:"exported_at"`
	ExportedSeq  uint64   `json:"exported_seq"`
	MessageCount int      `json:"message_count"`
	Warnings     []string `json:"warnings"`
	By           string   `json:"by,omitempty"`
}
