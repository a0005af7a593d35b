package event

import "encoding/json"

// Text roles of a message.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// SessionCreatedData opens the log of a session. It is always its first event.
type SessionCreatedData struct {
	Dialect   string `json:"dialect"`             // the dialect of the connection that created it
	Principal string `json:"principal,omitempty"` // the creator
	Owner     string `json:"owner,omitempty"`     // the principal for whom a service has created it
	Preferences
}

// Preferences are the settings that the creator of a session asked for.
type Preferences struct {
	ClientID    string          `json:"client_id,omitempty"`    // the device that created it
	UserID      string          `json:"user_id,omitempty"`      // as the client says; not verified
	Language    string          `json:"language,omitempty"`     // zh_CN, en_US; of texts for people
	ConfirmPlan *bool           `json:"confirm_plan,omitempty"` // ask before a plan is carried out; absent = the server's setting
	OnBusy      string          `json:"on_busy,omitempty"`      // reject, enqueue, interrupt; absent = the server's setting
	Extra       json.RawMessage `json:"extra,omitempty"`        // other members of the client's request, an object
}

// SessionClosedData ends a session: no message is accepted after it.
type SessionClosedData struct {
	Reason string `json:"reason"`          // user_request, timeout
	Stats  *Stats `json:"stats,omitempty"` // summary of the session
}

// SessionDeletedData records that people have deleted the session. It is the last event of the log: the service
// removes the earlier ones, and nothing follows it.
type SessionDeletedData struct {
	Reason string `json:"reason"` // user_request
}

// MessageReceivedData records that a user's message was accepted. RunID is the
// run that will answer it; it starts when its turn comes (first in, first out).
type MessageReceivedData struct {
	MessageID string  `json:"message_id"` // the command's id: a repeat of it is answered from here
	RunID     string  `json:"run_id"`
	Content   string  `json:"content"`
	Principal string  `json:"principal,omitempty"`
	Queued    int     `json:"queued"`            // runs ahead of this one; 0 = starts at once
	Sender    *Sender `json:"sender,omitempty"`  // absent: a user
	Tainted   bool    `json:"tainted,omitempty"` // its sender has read untrusted output
	Attachments
	RunSpec
}

// MessageRefusedData records that a user's message was not accepted.
type MessageRefusedData struct {
	MessageID string `json:"message_id"`
	Code      string `json:"code"`
	Message   string `json:"message"`
}

// RunStartedData begins the run that answers a message.
type RunStartedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"` // exec_YYYYMMDD_HHMMSS_ffffff, UTC, unique in the session
	MessageID   string `json:"message_id"`
	Content     string `json:"content"`           // the user's text
	Mode        string `json:"mode,omitempty"`    // absent (chat), plan, steps
	Repairs     string `json:"repairs,omitempty"` // mode steps: the run whose plan and results it starts from

	MaxConcurrent int     `json:"max_concurrent,omitempty"` // steps at once, of a run that has steps
	Budget        *Budget `json:"budget,omitempty"`         // limit of its resources; absent = unlimited
}

// RunCompletedData is the terminal event of a run that has an answer.
type RunCompletedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"`
	MessageID   string `json:"message_id"` // the assistant message that holds the answer
	Content     string `json:"content"`    // the answer
	DurationMS  int64  `json:"duration_ms"`
	Outcome     string `json:"outcome,omitempty"`     // pipeline runs: success, partial_success, rejected, cancelled, timeout
	StopReason  string `json:"stop_reason,omitempty"` // of an answer that is not complete: length, filtered, refused, other
	Usage       *Usage `json:"usage,omitempty"`       // of the whole run
}

// RunFailedData is the terminal event of a run that ended in an error.
type RunFailedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt,omitempty"`
	Code        string `json:"code"` // from the error catalogue
	Message     string `json:"message"`
	Retryable   bool   `json:"retryable"`
	Answer      string `json:"answer,omitempty"` // text for the user where a final answer is still due
	Usage       *Usage `json:"usage,omitempty"`  // of the whole run
	DurationMS  int64  `json:"duration_ms,omitempty"`

	Budget *BudgetUse `json:"budget,omitempty"` // BUDGET_EXCEEDED: the use of the budget

	Provider *ProviderError `json:"provider,omitempty"` // MODEL_*: the provider's error
}

// RunCancelledData is the terminal event of a run that was stopped on request.
type RunCancelledData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Reason      string `json:"reason"`
	By          string `json:"by,omitempty"` // principal
	CommandID   string `json:"command_id,omitempty"`
}

// JobStartedData claims a run for one worker. Attempt is the fence: events of
// a lower attempt are refused from here on.
type JobStartedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"` // 1, 2, ...
	Worker      string `json:"worker"`
	CommandID   string `json:"command_id,omitempty"` // the command that brought the job to the worker
	Resumed     bool   `json:"resumed"`              // an earlier attempt had begun
	MaxAttempts int    `json:"max_attempts,omitempty"`
	Model       string `json:"model,omitempty"`      // the requested model
	MaxTokens   int    `json:"max_tokens,omitempty"` // limit on one message of the model
	SwarmTask   string `json:"swarm_task,omitempty"` // the task log of the agent that has the job; Worker is its name
	Part
}

// AttemptRefusedData records that a worker tried to append after it had lost its claim.
type AttemptRefusedData struct {
	RunID   string `json:"run_id"`
	Attempt int    `json:"attempt"` // the refused one
	Current int    `json:"current"` // the attempt that holds the claim
	Worker  string `json:"worker"`
	What    Type   `json:"what"` // the type of event that it tried to append
	Part
}

// MessageStartedData opens a message of the model. Deltas and a completed or
// discarded event with the same id follow.
type MessageStartedData struct {
	MessageID   string `json:"message_id"`
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"`
	Role        string `json:"role"`
	Model       string `json:"model"`
	Waits       bool   `json:"waits,omitempty"` // no text yet: the delta that begins it says so
	Part
}

// MessageDeltaData carries the next piece of a message's text. Consecutive deltas
// of a message may be merged by concatenation, in the log or on the way to a viewer.
type MessageDeltaData struct {
	MessageID   string `json:"message_id"`
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"`
	Text        string `json:"text"`
	Begins      bool   `json:"begins,omitempty"` // the first of a message that waits
	Part
}

// MessageCompletedData holds a whole message: its text equals the concatenation of the message's deltas.
type MessageCompletedData struct {
	MessageID   string     `json:"message_id"`
	RunID       string     `json:"run_id"`
	ExecutionID string     `json:"execution_id"`
	Attempt     int        `json:"attempt"`
	Role        string     `json:"role"`
	Content     string     `json:"content"`
	ToolCalls   []ToolCall `json:"tool_calls,omitempty"`  // calls that the model asks for, in order
	StopReason  string     `json:"stop_reason"`           // end, tool_calls, length, filtered, refused, other, stopped
	StopDetail  string     `json:"stop_detail,omitempty"` // other: the provider's word for it
	Silent      bool       `json:"silent,omitempty"`      // no delta showed its text before
	Part
}

// Complete reports whether the model has said all that it wanted to.
func (d MessageCompletedData) Complete() bool {
	return d.StopReason == StopEnd || d.StopReason == StopToolCalls
}

// ToolCall is one call that a model asked for.
type ToolCall struct {
	ID        string          `json:"id"`   // unique in the session
	Name      string          `json:"name"` // as offered to the model
	Arguments json.RawMessage `json:"arguments"`
	Policy    *ToolPolicy     `json:"policy,omitempty"`  // of the tool; absent: it was not on offer
	Invalid   string          `json:"invalid,omitempty"` // why the call cannot be made, for the model: people are not asked about it
}

// MessageDiscardedData records that a started message will never be completed, because it is begun anew or nothing was
// said: its deltas do not count. A text that was stopped is completed with stop_reason stopped.
type MessageDiscardedData struct {
	MessageID   string `json:"message_id"`
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"` // the attempt that discards it
	Reason      string `json:"reason"`
	Silent      bool   `json:"silent,omitempty"` // no delta showed its text
	Part
}

// ToolCalledData is the intent: it is in the log before the tool may run.
type ToolCalledData struct {
	CallID      string          `json:"call_id"`
	RunID       string          `json:"run_id"`
	ExecutionID string          `json:"execution_id"`
	Attempt     int             `json:"attempt"`
	Tool        string          `json:"tool"`
	Description string          `json:"description"`
	Arguments   json.RawMessage `json:"arguments"`
	Digest      string          `json:"digest"`             // sha256 of tool and canonical arguments, hex
	Idempotent  bool            `json:"idempotent"`         // declared idempotent or read-only: may be retried
	InputID     string          `json:"input_id,omitempty"` // the question whose answer allowed it
	Part
}

// ToolStartedData records that the call was passed to the tool.
type ToolStartedData struct {
	CallID      string `json:"call_id"`
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"`
	Tool        string `json:"tool"`
	Retry       bool   `json:"retry"` // started before by an attempt that died; the tool is idempotent

	Arguments json.RawMessage `json:"arguments,omitempty"` // the tool's arguments: those of the call
	Part
}

// ToolCompletedData is the result of a successful call.
type ToolCompletedData struct {
	CallID      string `json:"call_id"`
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"`
	Tool        string `json:"tool"`
	Result      string `json:"result"`
	Truncated   bool   `json:"truncated,omitempty"` // Result was cut at the output cap
	Bytes       int    `json:"bytes"`               // length of the whole result
	DurationMS  int64  `json:"duration_ms"`
	Untrusted   bool   `json:"untrusted,omitempty"` // the result may hold instructions of strangers
	Files       []File `json:"files,omitempty"`     // images of the result
	Part
}

// ToolFailedData is the result of a failed call; the tool had no effect or reported its effect itself.
type ToolFailedData struct {
	CallID      string `json:"call_id"`
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"`
	Tool        string `json:"tool"`
	Code        string `json:"code"`
	Message     string `json:"message"`
	DurationMS  int64  `json:"duration_ms"`
	Untrusted   bool   `json:"untrusted,omitempty"` // the message may hold instructions of strangers
	Part
}

// ToolUnknownData records that a call was started, its result was lost and the tool must not run again: only people
// can find out whether it had its effect.
type ToolUnknownData struct {
	CallID      string `json:"call_id"`
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Attempt     int    `json:"attempt"`
	Tool        string `json:"tool"`
	Message     string `json:"message"`
	Part
}

// UsageRecordedData records the usage of one model call, as the provider counted it.
type UsageRecordedData struct {
	RunID        string   `json:"run_id"`
	ExecutionID  string   `json:"execution_id"`
	Attempt      int      `json:"attempt"`
	MessageID    string   `json:"message_id"`
	Model        string   `json:"model"`        // as the provider names it
	InputTokens  int64    `json:"input_tokens"` // all of them, cached ones included
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd,omitempty"` // by the price table; absent = the model has no price there
	TokenDetails
	Part
}

// Codes of the notices in which a gateway informs one connection about workers. They are not in any log.
const (
	NoWorker   = "NO_WORKER"   // a run waits, and no worker is available
	WorkerBack = "WORKER_BACK" // a worker is available again
)

// NoticeData is a fact for people that changes no state.
type NoticeData struct {
	Level   string `json:"level"` // info, warning
	Code    string `json:"code"`
	Message string `json:"message"`
	RunID   string `json:"run_id,omitempty"`
	Action  string `json:"action,omitempty"`  // the requested action: cancel_step, restart_step, cancel_plan, replan
	StepID  string `json:"step_id,omitempty"` // the step of the action
	TaskID  string `json:"task_id,omitempty"` // the task of the action
	OK      *bool  `json:"ok,omitempty"`      // whether it was done
	Error   string `json:"error,omitempty"`   // of what was not done: the code of the catalogue that says why
	Mode    string `json:"mode,omitempty"`    // of a replan: in_run, restart
}
