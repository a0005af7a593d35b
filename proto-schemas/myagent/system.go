package myagent

import "encoding/json"

// ConnectedContent is the content of system.connected.
type ConnectedContent struct {
	ServerName    string `json:"server_name"`
	ServerVersion string `json:"server_version"`
}

// ConnectedMeta is the metadata of system.connected.
type ConnectedMeta struct {
	Context
	Capabilities     []string `json:"server_capabilities"`
	HeartbeatSeconds float64  `json:"heartbeat_interval_seconds"`
	MaxTTLHours      float64  `json:"max_session_ttl_hours"`
	UptimeSeconds    int64    `json:"server_uptime_seconds"`
}

// HeartbeatContent is the content of system.heartbeat.
type HeartbeatContent struct {
	ServerTime string `json:"server_time"`
}

// HeartbeatMeta is the metadata of system.heartbeat. Seq is the newest of the session;
// a client that has not seen it has a gap.
type HeartbeatMeta struct {
	Context
	Seq           *uint64 `json:"seq,omitempty"` // absent without a session
	UptimeSeconds int64   `json:"server_uptime_seconds"`
}

// NoticeContent is the content of system.notice. EventList holds frames.
type NoticeContent struct {
	Message   string            `json:"message"`
	EventList []json.RawMessage `json:"event_list,omitempty"`
}

// NoticeMeta is the metadata of system.notice. Action says what has happened; all
// members after it are additions that belong to some of the actions.
type NoticeMeta struct {
	Work
	Type     string `json:"type"`     // info, warning
	Severity string `json:"severity"` // low; of a warning: medium
	Action   string `json:"action"`

	Code      string `json:"code,omitempty"`       // from the server's catalogues
	OK        *bool  `json:"ok,omitempty"`         // cancel_task, restart_task, cancel_plan, replan: whether it was done
	Mode      string `json:"mode,omitempty"`       // replan: in_run, restart; run_started: plan, tasks
	MessageID string `json:"message_id,omitempty"` // run_started, usage, text_discarded
	Reason    string `json:"reason,omitempty"`     // text_discarded

	StepID     string `json:"step_id,omitempty"`          // user_confirm: the question
	Decision   string `json:"decision,omitempty"`         // user_confirm: approve, modify, reject
	By         string `json:"by,omitempty"`               // user_confirm: who decided
	ClientID   string `json:"client_id,omitempty"`        // user_confirm: on which device
	Feedback   string `json:"feedback,omitempty"`         // user_confirm
	Tasks      []Task `json:"tasks,omitempty"`            // user_confirm: as they are now
	ResponseMS *int64 `json:"response_time_ms,omitempty"` // user_confirm: after the question

	ToolName string `json:"tool_name,omitempty"` // tool_started
	CallID   string `json:"call_id,omitempty"`   // tool_started

	ToolArgs json.RawMessage `json:"tool_args,omitempty"` // user_confirm: what the call runs with instead. Addition
	Attempt  int             `json:"attempt,omitempty"`   // of workers at this piece of work
	Current  int             `json:"current_attempt,omitempty"`
	Worker   string          `json:"worker,omitempty"`  // attempt_refused
	Refused  string          `json:"refused,omitempty"` // attempt_refused: the type of what it wanted to say

	Model      string   `json:"model,omitempty"`       // usage
	TokensUsed *Tokens  `json:"tokens_used,omitempty"` // usage
	CostUSD    *float64 `json:"cost_usd,omitempty"`    // usage

	Member string `json:"member,omitempty"` // of a task of the swarm: its agent

	Replayed    *int   `json:"replayed,omitempty"`            // replay: how many events were shown
	Count       int    `json:"count,omitempty"`               // replay_batch: how many are in event_list
	FirstSeq    uint64 `json:"first_seq,omitempty"`           // replay_batch
	LastSeq     uint64 `json:"last_seq,omitempty"`            // replay, replay_batch
	LastEventID string `json:"last_event_id,omitempty"`       // replay
	HashMatched *bool  `json:"state_hash_matched,omitempty"`  // replay
	FirstLeft   uint64 `json:"first_available_seq,omitempty"` // history_expired
}

// Actions of a system.notice. A notice about something that this version has no word
// for has the canonical type of the event as its action.
const (
	ActionRunStarted     = "run_started"
	ActionTextDiscarded  = "text_discarded"
	ActionToolStarted    = "tool_started"
	ActionUsage          = "usage"
	ActionAttemptRefused = "attempt_refused"
	ActionUserConfirm    = "user_confirm"
	ActionReplay         = "replay"
	ActionReplayBatch    = "replay_batch"
	ActionHistoryExpired = "history_expired"
	ActionNoWorker       = "no_worker"   // not in the original protocol: a run waits, and no worker is available
	ActionWorkerBack     = "worker_back" // not in the original protocol: one is available again
)

// SystemErrorMeta is the metadata of system.error.
type SystemErrorMeta struct {
	Context
	ErrorCode string `json:"error_code"`
	ErrorType string `json:"error_type"`
	Severity  string `json:"severity"`        // medium: the client can do something; critical: the operator
	Recovery  string `json:"recovery_action"` // retry, reconnect, escalate
	Operation string `json:"operation,omitempty"`
}

// ValidationMeta is the metadata of error.validation.
type ValidationMeta struct {
	Context
	ErrorCode   string          `json:"error_code"`
	ErrorType   string          `json:"error_type"`
	Recoverable bool            `json:"recoverable"`       // always true: correct it and send it again
	Strategy    string          `json:"recovery_strategy"` // escalate_to_user
	Field       string          `json:"field,omitempty"`
	Constraint  string          `json:"constraint,omitempty"`
	Provided    json.RawMessage `json:"provided_value,omitempty"` // cut where it is long
	Operation   string          `json:"operation,omitempty"`      // Addition
	Details     *ErrorContext   `json:"context,omitempty"`        // Addition
}

// RecoveryFailedMeta is the metadata of error.recovery_failed.
type RecoveryFailedMeta struct {
	Context
	ErrorCode   string `json:"error_code"`
	ErrorType   string `json:"error_type"`
	Recoverable bool   `json:"recoverable"`       // always false
	Strategy    string `json:"recovery_strategy"` // create_new_session; of a state that is too big: reconnect_with_state
	Operation   string `json:"operation,omitempty"`
}

// RateLimitedMeta is the metadata of error.rate_limited.
type RateLimitedMeta struct {
	Context
	ErrorCode   string `json:"error_code"`
	ErrorType   string `json:"error_type"`
	Recoverable bool   `json:"recoverable"`       // always true
	Strategy    string `json:"recovery_strategy"` // exponential_backoff
	Operation   string `json:"operation,omitempty"`
}

// TimeoutErrorMeta is the metadata of error.timeout. Stages are those of Work, and
// confirmation.
type TimeoutErrorMeta struct {
	Work
	ErrorCode      string  `json:"error_code"`
	ErrorType      string  `json:"error_type"`
	TimeoutSeconds int     `json:"timeout_seconds"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	Strategy       string  `json:"recovery_strategy"` // retry: it will be tried again; escalate_to_user
	Attempt        int     `json:"attempt,omitempty"`
	MaxAttempts    int     `json:"max_attempts,omitempty"`
	StepID         string  `json:"step_id,omitempty"` // the question that stayed without an answer. Addition
}

// RetryMeta is the metadata of error.retry_attempt.
type RetryMeta struct {
	Work
	Attempt      int    `json:"attempt"` // the one that failed
	MaxAttempts  int    `json:"max_attempts"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	ErrorType    string `json:"error_type"`
	ErrorMessage string `json:"error_message"`
	ErrorCode    string `json:"error_code"`           // Addition
	MessageID    string `json:"message_id,omitempty"` // Addition: the request to the model for this message is made again
	NextModel    string `json:"next_model,omitempty"` // Addition: to another model
}

// ExecutionErrorMeta is the metadata of error.execution.
type ExecutionErrorMeta struct {
	Work
	ErrorCode   string `json:"error_code"`
	ErrorType   string `json:"error_type"`
	Recoverable bool   `json:"recoverable"`
	Attempt     int    `json:"attempt,omitempty"` // at the plan, task or aggregate
	MaxAttempts int    `json:"max_attempts,omitempty"`
	ExecutionMS int64  `json:"execution_time_ms"`
}
