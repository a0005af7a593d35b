package myagent

import "encoding/json"

// Message is a message of a client. Content and Metadata are of the types of this
// package that the event's comment names, or nil.
type Message struct {
	Event       string          `json:"event"`
	SessionID   string          `json:"session_id,omitempty"`   // absent on user.create_session
	StepID      string          `json:"step_id,omitempty"`      // user.response: that of the question
	ID          string          `json:"id,omitempty"`           // a message that is sent again with the same id is carried out once. Addition
	SignedState json.RawMessage `json:"signed_state,omitempty"` // user.reconnect_with_state: restore the session from it
	Content     any             `json:"content,omitempty"`
	Metadata    any             `json:"metadata,omitempty"`
}

// Question is a content of user.message, which may also be the text itself, and of
// user.replan.
type Question struct {
	Question string `json:"question"`
}

// RunMeta is the metadata of user.message, user.solve_tasks and user.replan: how it is
// to be answered. Members that are not named here are kept with the run.
type RunMeta struct {
	MessageID      string   `json:"message_id,omitempty"`
	ClientID       string   `json:"client_id,omitempty"`
	ConfirmPlan    *bool    `json:"confirm_plan,omitempty"`
	OnBusy         string   `json:"on_busy,omitempty"` // reject, enqueue, interrupt
	MaxConcurrent  int      `json:"max_concurrent,omitempty"`
	Parallelizable *bool    `json:"parallelizable,omitempty"`
	TimeoutSeconds int      `json:"timeout_seconds,omitempty"`
	Source         string   `json:"source,omitempty"`
	UserID         string   `json:"user_id,omitempty"`
	Tags           []string `json:"tags,omitempty"`
	Budget         *Budget  `json:"budget,omitempty"` // Addition
}

// Budget is what a run may use up at most, below the server's own limits.
type Budget struct {
	Tokens    int64 `json:"tokens,omitempty"`
	ToolCalls int64 `json:"tool_calls,omitempty"`
	Seconds   int64 `json:"seconds,omitempty"` // while it is worked on
}

// Response is the content of user.response. Tasks replaces the list; the members of
// ModifiedTasks replace those of the tasks with the same id. ToolArgs is what an approved call runs with instead.
type Response struct {
	Approved      bool            `json:"approved"`
	Feedback      string          `json:"feedback,omitempty"`
	ModifiedTasks json.RawMessage `json:"modified_tasks,omitempty"`
	Tasks         json.RawMessage `json:"tasks,omitempty"`
	ToolArgs      json.RawMessage `json:"tool_args,omitempty"`
}

// ResponseMeta is the metadata of user.response.
type ResponseMeta struct {
	ClientID   string   `json:"client_id,omitempty"`
	ResponseMS int64    `json:"response_time_ms,omitempty"`
	Confidence *float64 `json:"decision_confidence,omitempty"`
}

// ReasonMeta is the metadata of user.cancel, user.cancel_plan, user.cancel_task and
// user.restart_task.
type ReasonMeta struct {
	Reason        string `json:"reason,omitempty"`
	CancelReason  string `json:"cancel_reason,omitempty"`         // user.cancel: in the user's words
	ClearPrevious *bool  `json:"clear_previous_result,omitempty"` // user.restart_task; a result is always replaced
	MaxAttempts   int    `json:"max_attempts,omitempty"`          // user.restart_task
}

// AckMeta is the metadata of user.ack.
type AckMeta struct {
	LastSeq       uint64 `json:"last_seq"`
	ClientID      string `json:"client_id,omitempty"` // whose position it is: what a reconnect without a position goes by
	ReceivedCount int    `json:"received_count,omitempty"`
	GapDetected   bool   `json:"gap_detected,omitempty"`
	AckTimeMS     int64  `json:"ack_time_ms,omitempty"`
}

// ClientInfo is the content of user.create_session.
type ClientInfo struct {
	ClientID      string          `json:"client_id,omitempty"`
	ClientVersion string          `json:"client_version,omitempty"`
	UserID        string          `json:"user_id,omitempty"`
	Preferences   *ClientSettings `json:"preferences,omitempty"`
}

// ClientSettings are what a user likes. Language: zh_CN, en_US.
type ClientSettings struct {
	Language string `json:"language,omitempty"`
	Theme    string `json:"theme,omitempty"`
}

// ClientMeta is the metadata of user.create_session.
type ClientMeta struct {
	Source      string `json:"source,omitempty"`
	ConfirmPlan *bool  `json:"confirm_plan,omitempty"` // Addition
	OnBusy      string `json:"on_busy,omitempty"`      // Addition
}

// Position is the content of user.reconnect_with_state: where the client left. Without
// a position it is the last one that ClientID acknowledged.
type Position struct {
	LastSeq     *uint64 `json:"last_seq,omitempty"`
	LastEventID string  `json:"last_event_id,omitempty"` // wins over LastSeq
	StateHash   string  `json:"client_state_hash,omitempty"`
	ClientID    string  `json:"client_id,omitempty"`
	Batch       bool    `json:"batch,omitempty"` // missed events in few frames. Addition
	Merge       bool    `json:"merge,omitempty"` // consecutive pieces of a text as one. Addition
}

// OfflineMeta is the metadata of user.reconnect_with_state.
type OfflineMeta struct {
	OfflineMS int64  `json:"offline_duration_ms,omitempty"`
	Reason    string `json:"disconnect_reason,omitempty"`
}

// StateMeta is the metadata of user.request_state.
type StateMeta struct {
	History    bool `json:"include_history,omitempty"`
	MaxHistory int  `json:"max_history_events,omitempty"`
}
