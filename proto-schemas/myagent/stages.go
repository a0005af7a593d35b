package myagent

import (
	"bytes"
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// Context names the part of a session's work that a frame concerns. Members without a meaning for
// the frame are absent. All are additions.
type Context struct {
	ConnectionID string `json:"connection_id,omitempty"` // only on frames that were made for this one socket
	RunID        string `json:"run_id,omitempty"`        // the run that answers a message
	ExecutionID  string `json:"execution_id,omitempty"`  // the same, with its time in it
	Member
}

// Member says which member of a watched team a frame is about: see Placed. Frames about
// the log itself have none of it.
type Member struct {
	Route   string `json:"member_route,omitempty"` // path of names from the team that is watched, where one is
	AgentID string `json:"agent_id,omitempty"`     // of that member, if it is an agent
	TeamID  string `json:"team_id,omitempty"`      // of the nested team that it is in, or is
}

// Placed returns the metadata, which is an object, with the member that it is about.
func Placed(metadata any, m Member) any { return placed{metadata, m} }

type placed struct {
	metadata any
	member   Member
}

// MarshalJSON implements json.Marshaler.
func (p placed) MarshalJSON() ([]byte, error) {
	b, err := plainjson.Marshal(p.metadata)
	if err != nil {
		return nil, err
	}
	more, err := plainjson.Marshal(p.member)
	if err != nil || len(more) <= len("{}") {
		return b, err
	}
	if len(b) <= len("{}") {
		return more, nil
	}
	return bytes.Join([][]byte{b[:len(b)-1], more[1:]}, []byte{','}), nil
}

// Work says which piece of a run a frame is about. But for Stage, which the original
// has on agent.thinking, all are additions.
type Work struct {
	Context
	Stage  string `json:"stage,omitempty"`   // planning, solving, aggregation; absent where a run has no stages
	TaskID string `json:"task_id,omitempty"` // while solving
	StepID string `json:"step_id,omitempty"` // while solving: the step_id of the task's solver.start. Addition
}

// Tokens are what models consumed, as their providers counted it. A count that some
// provider did not give is absent.
type Tokens struct {
	Input  *int64 `json:"input,omitempty"`
	Output *int64 `json:"output,omitempty"`

	Cached     int64 `json:"cached,omitempty"`      // of the input: read from the provider's cache. Addition
	CacheWrite int64 `json:"cache_write,omitempty"` // of the input: written to the provider's cache. Addition
	Reasoning  int64 `json:"reasoning,omitempty"`   // of the output. Addition
}

// Spent is what a piece of work consumed.
type Spent struct {
	LLMCalls   int      `json:"llm_calls"`
	TokensUsed *Tokens  `json:"tokens_used,omitempty"`
	CostUSD    *float64 `json:"cost_usd,omitempty"` // by the server's price table; absent where a model has no price
}

// PlanStartContent is the content of plan.start.
type PlanStartContent struct {
	Question string          `json:"question"`
	Context  json.RawMessage `json:"context,omitempty"` // further input of the planner
}

// PlanStartMeta is the metadata of plan.start.
type PlanStartMeta struct {
	Context
	PlanID  string `json:"plan_id"`
	Model   string `json:"model,omitempty"`   // that all workers have; absent where they differ
	Attempt int    `json:"attempt,omitempty"` // 1, 2, ... in the run. Addition
}

// Tasks is the content of plan.completed and user.solve_tasks, and a partial plan.
type Tasks struct {
	Tasks []Task `json:"tasks"`
}

// PlanCompletedMeta is the metadata of plan.completed. Sums of estimates are absent
// where no task has one.
type PlanCompletedMeta struct {
	Context
	PlanID           string `json:"plan_id,omitempty"`
	TaskCount        int    `json:"task_count"`
	EstimatedTokens  int64  `json:"total_estimated_tokens,omitempty"`
	EstimatedSeconds int64  `json:"total_estimated_time_seconds,omitempty"`
	Summary          string `json:"plan_summary,omitempty"`
	Reasoning        string `json:"plan_reasoning,omitempty"`
	Spent
	PlanningMS int64 `json:"planning_time_ms"`
}

// PlanCancelledMeta is the metadata of plan.cancelled. Reasons: user_request,
// timeout, error, replan.
type PlanCancelledMeta struct {
	Context
	PlanID      string `json:"plan_id,omitempty"`
	Reason      string `json:"reason"`
	By          string `json:"by,omitempty"`       // the user that asked for it. Addition
	Feedback    string `json:"feedback,omitempty"` // why, in the user's words. Addition
	PartialPlan *Tasks `json:"partial_plan,omitempty"`
	AfterMS     int64  `json:"cancellation_time_ms"` // how long the plan had existed
}

// CoercionMeta is the metadata of plan.coercion_error. Recovery actions: retry (another
// plan is made), manual_input (send a better list: to the question that
// metadata.confirm_step_id names, which is still open, or as a new message), none.
type CoercionMeta struct {
	Context
	PlanID        string `json:"plan_id,omitempty"`
	ErrorCode     string `json:"error_code"`
	ErrorType     string `json:"error_type"`
	RawOutput     string `json:"raw_output,omitempty"` // the beginning of it
	ErrorMessage  string `json:"error_message"`
	Recovery      string `json:"recovery_action,omitempty"`
	ConfirmStepID string `json:"confirm_step_id,omitempty"` // Addition
	By            string `json:"by,omitempty"`              // the sender. Addition
}

// SolverStartContent is the content of solver.start.
type SolverStartContent struct {
	Task Task `json:"task"`
}

// SolverStartMeta is the metadata of solver.start. The solver's id is the capability
// that the task asks for, or solver_default.
type SolverStartMeta struct {
	Context
	TaskID           string `json:"task_id"`
	SolverID         string `json:"solver_id"`
	Attempt          int    `json:"attempt"`
	DependenciesDone bool   `json:"dependencies_completed"`
}

// TaskName names a task.
type TaskName struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}

// SolverResult is what a task gave. Status: success.
type SolverResult struct {
	Status string `json:"status"`
	Output string `json:"output"`
}

// SolverCompletedContent is the content of solver.completed.
type SolverCompletedContent struct {
	Task   TaskName     `json:"task"`
	Result SolverResult `json:"result"`
}

// ToolUse counts the calls of one tool.
type ToolUse struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
}

// SolverCompletedMeta is the metadata of solver.completed.
type SolverCompletedMeta struct {
	Context
	TaskID      string `json:"task_id"`
	MessageID   string `json:"message_id,omitempty"` // the text that is the output. Addition
	Attempt     int    `json:"attempt"`              // Addition
	ExecutionMS int64  `json:"execution_time_ms"`
	Spent
	ToolCalls []ToolUse `json:"tool_calls"`
}

// StepFailedContent is the content of solver.step_failed.
type StepFailedContent struct {
	ErrorMessage string `json:"error_message"`
	StepName     string `json:"step_name"` // the task's title
}

// StepFailedMeta is the metadata of solver.step_failed: the attempts at a task are
// used up.
type StepFailedMeta struct {
	Context
	TaskID      string `json:"task_id"`
	ErrorCode   string `json:"error_code"`
	ErrorType   string `json:"error_type"`
	Recovery    bool   `json:"recovery_possible"` // by user.restart_task
	Attempt     int    `json:"attempt"`
	ExecutionMS int64  `json:"execution_time_ms"`
}

// TaskRef is the content of user.cancel_task, user.restart_task and solver.cancelled.
type TaskRef struct {
	TaskID string `json:"task_id"`
}

// SolverCancelledMeta is the metadata of solver.cancelled. Reasons: user_request,
// dependency_failed, timeout.
type SolverCancelledMeta struct {
	Context
	Reason      string         `json:"reason"`
	By          string         `json:"by,omitempty"`    // Addition
	Title       string         `json:"title,omitempty"` // Addition
	ExecutionMS int64          `json:"execution_time_ms"`
	Partial     *PartialResult `json:"partial_result,omitempty"`
}

// PartialResult is what had been said of a task that was cancelled.
type PartialResult struct {
	Output string `json:"output"`
}

// SolverRestartedContent is the content of solver.restarted.
type SolverRestartedContent struct {
	TaskID        string `json:"task_id"`
	PreviousError string `json:"previous_error,omitempty"`
}

// SolverRestartedMeta is the metadata of solver.restarted. Reasons: retry_after_error,
// user_request, dependency_restarted.
type SolverRestartedMeta struct {
	Context
	Attempt     int    `json:"attempt"` // the one to come
	MaxAttempts int    `json:"max_attempts"`
	Reason      string `json:"reason"`
	By          string `json:"by,omitempty"` // Addition
	BackoffMS   int64  `json:"backoff_ms"`
}

// SolverRetryContent is the content of solver.retry.
type SolverRetryContent struct {
	StepName string `json:"step_name"` // the task, or the tool that is called again
}

// SolverRetryMeta is the metadata of solver.retry: the work of a worker that went away
// is taken up by another one. It counts attempts of workers, not attempts at the task.
type SolverRetryMeta struct {
	Work
	Attempt     int    `json:"attempt"`
	MaxAttempts int    `json:"max_attempts,omitempty"`
	Reason      string `json:"reason"`              // worker_lost
	CallID      string `json:"call_id,omitempty"`   // of the tool that is called again
	ToolName    string `json:"tool_name,omitempty"` //
	Model       string `json:"model,omitempty"`
}

// SolverProgressContent is the content of solver.progress.
type SolverProgressContent struct {
	CurrentTask string `json:"current_task"` // the title of the task that moved it on
	Status      string `json:"status"`       // of that task: completed, failed, cancelled
}

// SolverProgressMeta is the metadata of solver.progress.
type SolverProgressMeta struct {
	Context
	TaskID    string `json:"task_id"`
	Percent   int    `json:"progress_percent"` // of all tasks, those that are over
	Completed int    `json:"completed_steps"`
	Failed    int    `json:"failed_steps"`
	Cancelled int    `json:"cancelled_steps"`
	Total     int    `json:"total_steps"`
	ElapsedMS int64  `json:"elapsed_time_ms"`
}

// AggregateStartMeta is the metadata of aggregate.start.
type AggregateStartMeta struct {
	Context
	TaskCount int `json:"task_count"`
	Completed int `json:"completed_tasks"`
	Failed    int `json:"failed_tasks"` // failed or cancelled
}

// AggregateContent is the content of aggregate.completed.
type AggregateContent struct {
	FinalResult FinalResult `json:"final_result"`
	Output      string      `json:"output"` // the same text, where some clients look for it
}

// FinalResult is the answer made of the tasks' results. Type: text.
type FinalResult struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// AggregateCompletedMeta is the metadata of aggregate.completed.
type AggregateCompletedMeta struct {
	Context
	MessageID     string `json:"message_id,omitempty"` // Addition
	AggregationMS int64  `json:"aggregation_time_ms"`
	Bytes         int    `json:"result_size_bytes"`
	Spent
}

// PipelineMeta is the metadata of pipeline.completed. Status: success,
// partial_success, failed.
type PipelineMeta struct {
	Context
	TotalMS     int64  `json:"total_time_ms"`
	PlanMS      int64  `json:"plan_time_ms"`
	SolveMS     int64  `json:"solve_time_ms"`
	AggregateMS int64  `json:"aggregate_time_ms"`
	Status      string `json:"status"`
	Summary     string `json:"result_summary,omitempty"`
}
