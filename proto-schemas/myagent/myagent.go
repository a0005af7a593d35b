// Package myagent holds the wire types of the MyAgent session protocol: the names of
// its events, one Go type for the content and metadata of each, one JSON Schema for
// each, and the examples of the protocol's original description.
//
// The schemas are normative. Inbound schemas allow members that they do not name,
// because a server passes over what it does not know; outbound schemas do not,
// because they say exactly what this version may send. Clients should pass over
// unknown members all the same. Where a string is called a status or a reason, its
// known values are listed in the type's comment, and others may come.
package myagent

import (
	"bytes"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Events from the client.
const (
	UserMessage            = "user.message"
	UserSolveTasks         = "user.solve_tasks"
	UserResponse           = "user.response"
	UserCancel             = "user.cancel"
	UserCancelTask         = "user.cancel_task"
	UserRestartTask        = "user.restart_task"
	UserCancelPlan         = "user.cancel_plan"
	UserReplan             = "user.replan"
	UserAck                = "user.ack"
	UserCreateSession      = "user.create_session"
	UserReconnect          = "user.reconnect"
	UserReconnectWithState = "user.reconnect_with_state"
	UserRequestState       = "user.request_state"
)

// Events to the client. UserMessage and UserSolveTasks are, too: every viewer of a
// session is shown what was asked.
const (
	PlanStart           = "plan.start"
	PlanCompleted       = "plan.completed"
	PlanCancelled       = "plan.cancelled"
	PlanCoercionError   = "plan.coercion_error"
	SolverStart         = "solver.start"
	SolverProgress      = "solver.progress"
	SolverCompleted     = "solver.completed"
	SolverStepFailed    = "solver.step_failed"
	SolverCancelled     = "solver.cancelled"
	SolverRestarted     = "solver.restarted"
	SolverRetry         = "solver.retry"
	AgentThinking       = "agent.thinking"
	AgentToolCall       = "agent.tool_call"
	AgentToolResult     = "agent.tool_result"
	AgentPartialAnswer  = "agent.partial_answer"
	AgentFinalAnswer    = "agent.final_answer"
	AgentUserConfirm    = "agent.user_confirm"
	AgentError          = "agent.error"
	AgentInterrupted    = "agent.interrupted"
	AgentTimeout        = "agent.timeout"
	AgentSessionCreated = "agent.session_created"
	AgentSessionEnd     = "agent.session_end"
	AgentStateExported  = "agent.state_exported"
	AgentStateRestored  = "agent.state_restored"
	SystemConnected     = "system.connected"
	SystemHeartbeat     = "system.heartbeat"
	SystemNotice        = "system.notice"
	SystemError         = "system.error"
	ErrorValidation     = "error.validation"
	ErrorTimeout        = "error.timeout"
	ErrorRetryAttempt   = "error.retry_attempt"
	ErrorExecution      = "error.execution"
	ErrorRecoveryFailed = "error.recovery_failed"
	ErrorRateLimited    = "error.rate_limited"
	AggregateStart      = "aggregate.start"
	AggregateCompleted  = "aggregate.completed"
	PipelineCompleted   = "pipeline.completed"
)

// Inbound lists the events from the client.
var Inbound = []string{
	UserMessage, UserSolveTasks, UserResponse, UserCancel, UserCancelTask, UserRestartTask, UserCancelPlan,
	UserReplan, UserAck, UserCreateSession, UserReconnect, UserReconnectWithState, UserRequestState,
}

// Outbound lists the events to the client.
var Outbound = []string{
	UserMessage, UserSolveTasks,
	PlanStart, PlanCompleted, PlanCancelled, PlanCoercionError,
	SolverStart, SolverProgress, SolverCompleted, SolverStepFailed, SolverCancelled, SolverRestarted, SolverRetry,
	AgentThinking, AgentToolCall, AgentToolResult, AgentPartialAnswer, AgentFinalAnswer, AgentUserConfirm, AgentError,
	AgentInterrupted, AgentTimeout, AgentSessionCreated, AgentSessionEnd, AgentStateExported, AgentStateRestored,
	SystemConnected, SystemHeartbeat, SystemNotice, SystemError,
	ErrorValidation, ErrorTimeout, ErrorRetryAttempt, ErrorExecution, ErrorRecoveryFailed, ErrorRateLimited,
	AggregateStart, AggregateCompleted, PipelineCompleted,
}

// Limits of what a client may send.
const (
	MaxContent = 10_000 // characters of a text; the original's
	MaxTasks   = 100    // tasks of a list
	MaxID      = 128    // characters of an id, of [A-Za-z0-9_-]
	MaxTimeout = 86_400 // timeout_seconds: a day, which is as long as a session lives unused
	MaxTries   = 10     // max_attempts of a restarted task: three times the usual number
	MaxHistory = 1_000  // max_history_events: what the original keeps of a session
	MaxSeq     = 1<<53 - 1
	MaxBudget  = 1_000_000_000 // largest number in metadata.budget
)

// Frame is a message to the client. Content is one of the types of this package, a
// string, or nil where the event has none; Metadata is always a JSON object.
//
// Seq is the position of the event that the frame reports in its session and EventID
// the cursor to come back with; frames that report no event of a session have neither.
type Frame struct {
	Event       string  `json:"event"`
	SessionID   string  `json:"session_id,omitempty"`
	Seq         uint64  `json:"seq,omitempty"`
	EventID     string  `json:"event_id,omitempty"`
	StepID      *string `json:"step_id,omitempty"` // nil where the event has none
	Content     any     `json:"content,omitempty"`
	Metadata    any     `json:"metadata"`
	Timestamp   string  `json:"timestamp"`
	ShowContent string  `json:"show_content,omitempty"`
}

// Encode returns the frame as JSON on one line: UTF-8, and without the escapes for
// HTML that encoding/json adds by default. It fails only if a raw member is not JSON.
func (f Frame) Encode() ([]byte, error) {
	b, err := plainjson.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode %s frame: %w", f.Event, err)
	}
	if !utf8.Valid(b) { // Only raw members can hold that.
		b = bytes.ToValidUTF8(b, []byte("\ufffd"))
	}
	return b, nil
}

// Stamp writes a time as frames have it: RFC 3339, UTC, milliseconds.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
