package event

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Modes of a run.
const (
	ModeChat  = ""      // one turn of the agent answers
	ModePlan  = "plan"  // plan, confirm, solve, aggregate
	ModeSteps = "steps" // solve the given steps, aggregate
)

// Stages of a pipeline run.
const (
	StagePlanning    = "planning"
	StageSolving     = "solving"
	StageAggregation = "aggregation"
)

// Reactions of a session to a message that comes during a run.
const (
	OnBusyReject    = "reject"
	OnBusyEnqueue   = "enqueue"
	OnBusyInterrupt = "interrupt"
)

// Decisions on a question.
const (
	DecisionApprove = "approve"
	DecisionModify  = "modify"
	DecisionReject  = "reject"
	DecisionAnswer  = "answer" // of questions of agents of the swarm
)

// Part names the piece of a pipeline run that an event belongs to. All its members are empty in a chat run.
type Part struct {
	JobID  string `json:"job_id,omitempty"`  // job that a worker claims: a planning, one try at a step, an aggregation; absent in a chat run, which is one job
	Stage  string `json:"stage,omitempty"`   // planning, solving, aggregation
	StepID string `json:"step_id,omitempty"` // while solving
}

// Job returns the id of the job; a chat run is one job with the run's id.
func (p Part) Job(runID string) string {
	if p.JobID != "" {
		return p.JobID
	}
	return runID
}

// RunSpec selects how to answer a message.
type RunSpec struct {
	Mode           string          `json:"mode,omitempty"`            // absent (chat), plan, steps
	Steps          []Step          `json:"steps,omitempty"`           // mode steps: the steps to solve
	ConfirmPlan    *bool           `json:"confirm_plan,omitempty"`    // absent = the session's setting
	OnBusy         string          `json:"on_busy,omitempty"`         // reject, enqueue, interrupt; absent = the session's setting
	MaxConcurrent  int             `json:"max_concurrent,omitempty"`  // steps at once; absent = the server's limit
	TimeoutSeconds int             `json:"timeout_seconds,omitempty"` // of one try at a step; absent = the server's limit
	ClientID       string          `json:"client_id,omitempty"`       // the sending device
	Budget         *Budget         `json:"budget,omitempty"`          // limit of its resources; lower limits of the server apply
	History        []Said          `json:"history,omitempty"`         // a conversation before the session's own, for the model
	Facts          []Fact          `json:"facts,omitempty"`           // for the model, before the message
	ClientTools    []ClientTool    `json:"client_tools,omitempty"`    // tools that the client carries out
	Files          []File          `json:"files,omitempty"`           // that the message brings along
	Agent          string          `json:"agent,omitempty"`           // mode chat: the agent of the swarm, by name, that answers; absent = the model
	Extra          json.RawMessage `json:"extra,omitempty"`           // other members of the client's message, an object
}

// Said is a message of a conversation that the session does not have.
type Said struct {
	Role    string `json:"role"` // user, assistant
	Content string `json:"content"`
}

// Fact is what a client tells the model in addition to a message.
type Fact struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// ClientTool is a tool that the client carries out: the model may call it, and a call waits for the client's answer.
type ClientTool struct {
	Name        string          `json:"name"` // [A-Za-z0-9_-]{1,64}
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"` // a JSON Schema of an object; absent = any
}

// ClientTool returns the tool of the name that the client carries out, nil if it offers none.
func (s RunSpec) ClientTool(name string) *ClientTool {
	for i := range s.ClientTools {
		if s.ClientTools[i].Name == name {
			return &s.ClientTools[i]
		}
	}
	return nil
}

// Step is one piece of a plan.
type Step struct {
	ID               string          `json:"id"` // [A-Za-z0-9_-]{1,128}, unique in the plan
	Title            string          `json:"title"`
	Description      string          `json:"description,omitempty"`
	Priority         int             `json:"priority,omitempty"` // lower starts earlier among steps that could start
	Dependencies     []string        `json:"dependencies,omitempty"`
	Capability       string          `json:"capability,omitempty"` // any agent that has it may solve the step; absent = the built-in one
	Context          json.RawMessage `json:"context,omitempty"`
	EstimatedTokens  int64           `json:"estimated_tokens,omitempty"`
	EstimatedSeconds int64           `json:"estimated_time_seconds,omitempty"`
	Extra            json.RawMessage `json:"extra,omitempty"` // unknown members, an object
}

// Usage is the consumption of a piece of work, as the providers counted it.
type Usage struct {
	LLMCalls     int      `json:"llm_calls"`
	ToolCalls    int      `json:"tool_calls"`
	InputTokens  *int64   `json:"input_tokens,omitempty"`  // absent = unknown from some provider
	OutputTokens *int64   `json:"output_tokens,omitempty"` // absent = unknown from some provider
	CostUSD      *float64 `json:"cost_usd,omitempty"`      // absent = some model has no price
	TokenDetails
}

// Stats summarises a session.
type Stats struct {
	DurationSeconds  int64  `json:"duration_seconds"`
	TotalMessages    int    `json:"total_messages"`
	TotalSteps       int    `json:"total_steps"`
	CompletionStatus string `json:"completion_status"` // success, partial, failed
	Usage            Usage  `json:"usage"`
}

// ToolUse counts the calls of one tool.
type ToolUse struct {
	Name  string `json:"name"`
	Calls int    `json:"calls"`
}

// SessionPausedData records that the active run was stopped and the session summarised. The session stays usable: a
// new message continues it.
type SessionPausedData struct {
	Reason string `json:"reason"` // user_request
	Stats  Stats  `json:"stats"`
}

// SessionRestoredData opens or continues a session with the state of an export.
type SessionRestoredData struct {
	Dialect      string          `json:"dialect"`
	Principal    string          `json:"principal,omitempty"` // principal that restored it
	ExportedAt   time.Time       `json:"exported_at"`
	ExportedSeq  uint64          `json:"exported_seq"` // the newest event that the export knew
	Stage        string          `json:"stage"`        // of the active run: planning, confirmation, solving, aggregation; idle without one
	MessageCount int             `json:"message_count"`
	Warnings     []string        `json:"warnings,omitempty"` // parts that could not be restored
	State        json.RawMessage `json:"state"`              // conversation.Snapshot
}

// PlanStartedData begins a try at a plan.
type PlanStartedData struct {
	RunID       string          `json:"run_id"`
	ExecutionID string          `json:"execution_id"`
	PlanID      string          `json:"plan_id"`
	Number      int             `json:"number"` // 1, 2, ... in the run
	Question    string          `json:"question"`
	Context     json.RawMessage `json:"context,omitempty"`
	MaxTries    int             `json:"max_tries,omitempty"` // the last try; 0 = unknown
	Model       string          `json:"model,omitempty"`     // the model that all workers share; absent where they differ or none runs
	Part
}

// PlanCompletedData is a valid plan: the steps' dependencies exist.
type PlanCompletedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	PlanID      string `json:"plan_id"`
	Steps       []Step `json:"steps"`
	Summary     string `json:"summary,omitempty"`
	Reasoning   string `json:"reasoning,omitempty"`
	Usage       Usage  `json:"usage"`
	DurationMS  int64  `json:"duration_ms"`
	Part
}

// PlanInvalidData records an answer that is not a valid list of tasks.
type PlanInvalidData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	PlanID      string `json:"plan_id,omitempty"`
	InputID     string `json:"input_id,omitempty"` // the question whose answer held it; the question stays open
	By          string `json:"by,omitempty"`       // principal that gave the answer
	Code        string `json:"code"`
	Message     string `json:"message"`
	Raw         string `json:"raw,omitempty"` // the beginning of the invalid answer
	Recovery    string `json:"recovery"`      // retry, manual_input, none
	Part
}

// PlanCancelledData ends a plan that will not be carried out.
type PlanCancelledData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	PlanID      string `json:"plan_id"`
	Reason      string `json:"reason"` // user_request, timeout, error, replan
	By          string `json:"by,omitempty"`
	Feedback    string `json:"feedback,omitempty"`
	Steps       []Step `json:"steps,omitempty"` // as far as known
	DurationMS  int64  `json:"duration_ms"`
	Part
}

// InputRequestedData asks people a question. It takes exactly one answer.
type InputRequestedData struct {
	InputID        string          `json:"input_id"`
	RunID          string          `json:"run_id"`
	ExecutionID    string          `json:"execution_id"`
	Scope          string          `json:"scope"` // plan, tool, client_tool, budget, agent
	PlanID         string          `json:"plan_id,omitempty"`
	Steps          []Step          `json:"steps,omitempty"`
	Summary        string          `json:"summary,omitempty"`
	TimeoutSeconds int             `json:"timeout_seconds"`   // 0 = unlimited
	Attempt        int             `json:"attempt,omitempty"` // of scope tool: the worker's claim that asks
	CallID         string          `json:"call_id,omitempty"`
	Tool           string          `json:"tool,omitempty"`
	Description    string          `json:"description,omitempty"` // of the tool
	Arguments      json.RawMessage `json:"arguments,omitempty"`
	Digest         string          `json:"digest,omitempty"` // as in tool.called: the answer holds for exactly this call
	// Definition is the digest of the tool as it is shown: an approval holds as long as the tool is the same.
	Definition string `json:"definition,omitempty"`
	// Parameters is the JSON Schema of the tool's arguments: the answer may change them. Absent: it may not.
	Parameters json.RawMessage `json:"parameters,omitempty"`

	Budget *BudgetUse `json:"budget,omitempty"` // of scope budget: the use of the run's budget
	AgentQuestion
	Part // of scope agent: the job
}

// AgentInput begins the ids of questions of scope agent, and of no others.
const AgentInput = "ask_"

// AgentQuestion is what a question of scope agent has besides: that of the agent in the log of its task.
type AgentQuestion struct {
	TaskID      string          `json:"task_id,omitempty"`  // id of the task's log
	TaskSeq     uint64          `json:"task_seq,omitempty"` // of the question in that log
	AgentID     string          `json:"agent_id,omitempty"`
	AgentName   string          `json:"agent_name,omitempty"`
	MessageType string          `json:"message_type,omitempty"`
	Message     json.RawMessage `json:"message,omitempty"`
	Options     json.RawMessage `json:"options,omitempty"`
	Cut         bool            `json:"cut,omitempty"` // message and options are too large: the log of the task has the whole
	ExpiresAt   time.Time       `json:"expires_at,omitzero"`
}

// InputAnsweredData is the one answer that counts.
type InputAnsweredData struct {
	InputID     string `json:"input_id"`
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	CommandID   string `json:"command_id"`
	Decision    string `json:"decision"` // approve, modify, reject; of scope agent also answer
	Feedback    string `json:"feedback,omitempty"`
	Steps       []Step `json:"steps,omitempty"` // modify: the tasks after the change
	By          string `json:"by,omitempty"`
	ClientID    string `json:"client_id,omitempty"`
	ElapsedMS   int64  `json:"elapsed_ms"`
	Scope       string `json:"scope,omitempty"`   // client_tool, budget, agent; absent: of a plan, or of a tool
	CallID      string `json:"call_id,omitempty"` // of scope tool
	Tool        string `json:"tool,omitempty"`
	Proof       *Proof `json:"proof,omitempty"` // of the person's decision
	// Arguments is what the call runs with instead of the model's: of scope tool, with the decision modify.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Segment   string          `json:"segment,omitempty"` // the client's id for what the run does next
	Result    string          `json:"result,omitempty"`  // of scope client_tool: what the tool has returned
	Files     []File          `json:"files,omitempty"`   // of scope client_tool: that the tool has returned besides

	Message json.RawMessage `json:"message,omitempty"` // of scope agent: what the agent was told, unless it is too large
}

// InputExpiredData records that a question takes no answer any more: its time has passed without one.
type InputExpiredData struct {
	InputID        string `json:"input_id"`
	RunID          string `json:"run_id"`
	ExecutionID    string `json:"execution_id"`
	TimeoutSeconds int    `json:"timeout_seconds"`
	ElapsedMS      int64  `json:"elapsed_ms"`
	Scope          string `json:"scope,omitempty"`     // agent or budget; absent: that of a plan
	Withdrawn      bool   `json:"withdrawn,omitempty"` // of scope agent: its time has not passed, but the agent does not wait any more
}

// StepStartedData begins an attempt at a task.
type StepStartedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Step        Step   `json:"step"`
	Attempt     int    `json:"attempt"`             // 1, 2, ... at this task
	MaxTries    int    `json:"max_tries,omitempty"` // the last try; 0 = unknown
	Part
}

// StepCompletedData is a task's result.
type StepCompletedData struct {
	RunID       string    `json:"run_id"`
	ExecutionID string    `json:"execution_id"`
	Title       string    `json:"title"`
	Attempt     int       `json:"attempt"`
	MessageID   string    `json:"message_id,omitempty"` // the message that holds the output
	Output      string    `json:"output"`
	Usage       Usage     `json:"usage"`
	Tools       []ToolUse `json:"tools,omitempty"`
	DurationMS  int64     `json:"duration_ms"`
	Part
}

// StepFailedData records that all attempts at a task have failed.
type StepFailedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Title       string `json:"title"`
	Attempt     int    `json:"attempt"`
	Code        string `json:"code"`
	Message     string `json:"message"`
	DurationMS  int64  `json:"duration_ms"`
	Part
}

// StepCancelledData records that a task will not be solved.
type StepCancelledData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Title       string `json:"title"`
	Reason      string `json:"reason"` // user_request, dependency_failed, timeout
	By          string `json:"by,omitempty"`
	Partial     string `json:"partial,omitempty"` // the text so far
	DurationMS  int64  `json:"duration_ms"`
	Part
}

// StepRestartedData records that a task gets another attempt.
type StepRestartedData struct {
	RunID         string `json:"run_id"`
	ExecutionID   string `json:"execution_id"`
	Attempt       int    `json:"attempt"` // the next attempt
	MaxAttempts   int    `json:"max_attempts"`
	Reason        string `json:"reason"` // retry_after_error, user_request, dependency_restarted
	By            string `json:"by,omitempty"`
	BackoffMS     int64  `json:"backoff_ms"`
	PreviousError string `json:"previous_error,omitempty"`
	Part
}

// JobFailedData records that a job ended in an error. Attempt is the claim of the worker that reports it, 0 without
// one.
type JobFailedData struct {
	RunID          string         `json:"run_id"`
	ExecutionID    string         `json:"execution_id"`
	Attempt        int            `json:"attempt,omitempty"`
	Code           string         `json:"code"`
	Message        string         `json:"message"`
	Retryable      bool           `json:"retryable"`
	TimeoutSeconds int            `json:"timeout_seconds,omitempty"` // of a timeout: its limit
	ElapsedMS      int64          `json:"elapsed_ms"`
	Try            int            `json:"try"`                // of the plan, task or aggregate: 1, 2, ...
	MaxTries       int            `json:"max_tries"`          //
	Provider       *ProviderError `json:"provider,omitempty"` // MODEL_*: the provider's error
	Part
}

// RetryScheduledData announces a retry of failed work after a pause.
type RetryScheduledData struct {
	RunID        string `json:"run_id"`
	ExecutionID  string `json:"execution_id"`
	Attempt      int    `json:"attempt"` // the failed attempt
	MaxAttempts  int    `json:"max_attempts"`
	RetryAfterMS int64  `json:"retry_after_ms"`
	Code         string `json:"code"`
	Message      string `json:"message"`
	Part
}

// RequestFailedData records that a request to the model failed and will be repeated after a pause. The model's text
// so far is discarded; the next request begins a new message.
type RequestFailedData struct {
	RunID        string         `json:"run_id"`
	ExecutionID  string         `json:"execution_id"`
	Attempt      int            `json:"attempt"`
	MessageID    string         `json:"message_id"` // the discarded message
	Try          int            `json:"try"`        // 1, 2, ...: requests since the model's last answer
	MaxTries     int            `json:"max_tries"`
	RetryAfterMS int64          `json:"retry_after_ms"`
	Code         string         `json:"code"`                 // from the error catalogue
	Message      string         `json:"message"`              // the problem
	Provider     *ProviderError `json:"provider,omitempty"`   // the provider's error
	NextModel    string         `json:"next_model,omitempty"` // the model that is asked next, if it is another one
	Part
}

// Text tells waiting people the problem, and when which model is asked next.
func (d RequestFailedData) Text() string {
	next := "Trying again"
	if d.NextModel != "" {
		next = "Asking the model " + d.NextModel
	}
	return fmt.Sprintf("%s %s in %s s (%d of %d).", d.Message, next, d.Seconds(), d.Try+1, d.MaxTries)
}

// Seconds returns the pause before the next request in seconds, with one digit after the point unless that is 0.
func (d RequestFailedData) Seconds() string {
	return strconv.FormatFloat(math.Ceil(float64(d.RetryAfterMS)/100)/10, 'f', -1, 64)
}

// RunProgressedData is the progress of a run's tasks.
type RunProgressedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	StepID      string `json:"step_id"` // the step that caused the progress
	Title       string `json:"title"`   //
	Status      string `json:"status"`  // of that step: completed, failed, cancelled
	Completed   int    `json:"completed"`
	Failed      int    `json:"failed"`
	Cancelled   int    `json:"cancelled"`
	Total       int    `json:"total"`
	ElapsedMS   int64  `json:"elapsed_ms"` // since solving began
}

// AggregateStartedData begins the aggregation of the tasks' results.
type AggregateStartedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	StepCount   int    `json:"step_count"`
	Completed   int    `json:"completed"`
	Failed      int    `json:"failed"`              // failed or cancelled
	MaxTries    int    `json:"max_tries,omitempty"` // the last try; 0 = unknown
	Part
}

// AggregateCompletedData is the answer made of the tasks' results.
type AggregateCompletedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	MessageID   string `json:"message_id,omitempty"`
	Result      string `json:"result"`
	Bytes       int    `json:"bytes"`
	Usage       Usage  `json:"usage"`
	DurationMS  int64  `json:"duration_ms"`
	Part
}

// PipelineCompletedData summarises a pipeline run. The run's terminal event follows.
type PipelineCompletedData struct {
	RunID       string `json:"run_id"`
	ExecutionID string `json:"execution_id"`
	Status      string `json:"status"` // success, partial_success, failed
	TotalMS     int64  `json:"total_ms"`
	PlanMS      int64  `json:"plan_ms"`
	SolveMS     int64  `json:"solve_ms"`
	AggregateMS int64  `json:"aggregate_ms"`
	Summary     string `json:"summary"`
}

// ErrorData tells people of an error that does not end the run.
type ErrorData struct {
	RunID       string `json:"run_id,omitempty"`
	ExecutionID string `json:"execution_id,omitempty"`
	Stage       string `json:"stage,omitempty"`
	Code        string `json:"code"`
	Message     string `json:"message"`
	Operation   string `json:"operation,omitempty"`
	Recovery    string `json:"recovery,omitempty"` // retry, escalate, skip
}

// StateExportedData is a direct message: the state of a session, readable and signed.
type StateExportedData struct {
	ExportedAt time.Time         `json:"exported_at"`
	ValidUntil time.Time         `json:"valid_until"`
	Seq        uint64            `json:"seq"`               // the newest event in it
	Hash       string            `json:"hash"`              // of the state: compare with client_state_hash
	State      json.RawMessage   `json:"state"`             // readable: stage, plan_context, current_task_id, completed_task_ids, agent_state
	Signed     json.RawMessage   `json:"signed"`            // for an import: state, timestamp, version, checksum, signature
	History    []json.RawMessage `json:"history,omitempty"` // canonical events, oldest first
}

// CommandRefusedData is a direct message: the reason why a command had no effect.
type CommandRefusedData struct {
	CommandID  string `json:"command_id"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Field      string `json:"field,omitempty"`
	InputID    string `json:"input_id,omitempty"`    // the question that was answered before
	AnsweredBy string `json:"answered_by,omitempty"` // the answering principal
	AnsweredOn string `json:"answered_on,omitempty"` // the answering device
	Decision   string `json:"decision,omitempty"`    // the earlier answer
	AgentName  string `json:"agent_name,omitempty"`  // of a question of a team's member: its name there
}
