package myagent

import "encoding/json"

// ThinkingMeta is the metadata of agent.thinking.
type ThinkingMeta struct {
	Work
	Model      string `json:"model,omitempty"`       // the one that is asked
	MaxTokens  int    `json:"max_tokens,omitempty"`  // limit on its answer
	MessageID  string `json:"message_id,omitempty"`  // the text that the model writes. Addition
	Attempt    int    `json:"attempt,omitempty"`     // of workers at this piece of work. Addition
	Resumed    bool   `json:"resumed,omitempty"`     // another worker had begun. Addition
	StopReason string `json:"stop_reason,omitempty"` // end, tool_calls, length, filtered, refused, other, stopped: no text follows. Addition
	MergedFrom uint64 `json:"merged_from,omitempty"` // the frame stands for the events from this seq on. Addition

	Reasoning   bool `json:"reasoning,omitempty"`    // content is what the model thinks before it writes the message. Addition
	TotalLength *int `json:"total_length,omitempty"` // of a reasoning that is whole: its characters. Addition
}

// ToolCallMeta is the metadata of agent.tool_call. ToolArgs is a JSON object.
type ToolCallMeta struct {
	Work
	ToolName string          `json:"tool_name"`
	ToolArgs json.RawMessage `json:"tool_args"`
	CallID   string          `json:"call_id"`
	Attempt  int             `json:"attempt,omitempty"` // Addition
}

// ToolResult is what a tool gave. Status: success, failed, unknown (the result was lost,
// and whether the tool had its effect is not known).
type ToolResult struct {
	Status    string `json:"status"`
	Output    string `json:"output,omitempty"`
	Truncated bool   `json:"truncated,omitempty"` // Output was cut
	Bytes     int    `json:"bytes,omitempty"`     // length of the whole output
	Error     string `json:"error,omitempty"`
	ErrorCode string `json:"error_code,omitempty"`
	ErrorType string `json:"error_type,omitempty"`
}

// ToolResultMeta is the metadata of agent.tool_result.
type ToolResultMeta struct {
	Work
	ToolName    string     `json:"tool_name"`
	CallID      string     `json:"call_id"`
	Result      ToolResult `json:"result"`
	ExecutionMS *int64     `json:"execution_time_ms,omitempty"` // absent where the result was lost
	Attempt     int        `json:"attempt,omitempty"`           // Addition
}

// PartialAnswerMeta is the metadata of agent.partial_answer. The contents of one
// message_id, joined in order, are what the model has written so far. The last one is
// empty and final.
type PartialAnswerMeta struct {
	Work
	MessageID   string `json:"message_id"`             // Addition
	Streaming   bool   `json:"is_streaming"`           // always true
	Final       bool   `json:"is_final"`               // the text is whole
	TotalLength *int   `json:"total_length,omitempty"` // final: its characters
	StopReason  string `json:"stop_reason,omitempty"`  // final: end, tool_calls, length, filtered, refused, other, stopped. Addition
	Attempt     int    `json:"attempt,omitempty"`      // Addition
	MergedFrom  uint64 `json:"merged_from,omitempty"`  // the frame stands for the events from this seq on. Addition
}

// FinalAnswerMeta is the metadata of agent.final_answer. Type: text. Status: success,
// partial_success, failed, rejected, cancelled, timeout.
type FinalAnswerMeta struct {
	Context
	MessageID    string   `json:"message_id,omitempty"` // the text that is the answer. Addition
	Type         string   `json:"type"`
	Status       string   `json:"status"` // Addition
	TotalTokens  *int64   `json:"total_tokens,omitempty"`
	TokensUsed   *Tokens  `json:"tokens_used,omitempty"` // Addition
	CostUSD      *float64 `json:"cost_usd,omitempty"`
	LLMCalls     *int     `json:"llm_calls,omitempty"`  // Addition
	ToolCalls    *int     `json:"tool_calls,omitempty"` // Addition
	GenerationMS *int64   `json:"generation_time_ms,omitempty"`
	StopReason   string   `json:"stop_reason,omitempty"` // of an answer that is not complete: length, filtered, refused, other. Addition
	ErrorCode    string   `json:"error_code,omitempty"`  // failed: why. Addition
	ErrorType    string   `json:"error_type,omitempty"`  // Addition
}

// Option is an answer that a question offers.
type Option struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// ConfirmMeta is the metadata of agent.user_confirm. Scope: plan; tool (whether it may be
// called); task (an agent of the swarm asks: the feedback of the answer is what it gets).
type ConfirmMeta struct {
	Context
	Scope          string   `json:"scope"`
	PlanID         string   `json:"plan_id,omitempty"`    // Addition
	Tasks          []Task   `json:"tasks,omitempty"`      // scope plan: a client offers to edit them
	TaskCount      int      `json:"task_count,omitempty"` // scope plan
	Summary        string   `json:"plan_summary,omitempty"`
	Options        []Option `json:"options"`
	TimeoutSeconds int      `json:"timeout_seconds"`
	Required       bool     `json:"requires_confirmation"` // always true; where some clients look for it

	ToolName string          `json:"tool_name,omitempty"` // scope tool. Addition
	ToolArgs json.RawMessage `json:"tool_args,omitempty"` // scope tool: what it will be called with. Addition
	// ToolSchema is the JSON Schema of tool_args, which the answer may change; absent: it may not. Scope tool. Addition.
	ToolSchema json.RawMessage `json:"tool_schema,omitempty"`
	CallID     string          `json:"call_id,omitempty"` // scope tool. Addition
	TaskID     string          `json:"task_id,omitempty"` // scope task. Addition
}

// ErrorMeta is the metadata of agent.error. ErrorCode is the protocol's code and
// ErrorType the entry of the error catalogue.
type ErrorMeta struct {
	Context
	ErrorCode   string        `json:"error_code"`
	ErrorType   string        `json:"error_type"`
	Stage       string        `json:"stage,omitempty"`
	Operation   string        `json:"operation,omitempty"`
	Details     *ErrorContext `json:"context,omitempty"`
	Recovery    string        `json:"recovery_action"` // retry, escalate, skip
	Recoverable bool          `json:"recoverable"`
	MessageID   string        `json:"message_id,omitempty"` // the message that was refused. Addition
	Field       string        `json:"field,omitempty"`      // Addition
}

// ErrorContext says what an error was about.
type ErrorContext struct {
	CommandID  string `json:"command_id,omitempty"`
	StepID     string `json:"step_id,omitempty"`     // the question that was answered before
	AnsweredBy string `json:"answered_by,omitempty"` // by whom
	Client     string `json:"client_id,omitempty"`   // on which device
	Decision   string `json:"decision,omitempty"`    // and how
}

// InterruptedMeta is the metadata of agent.interrupted.
type InterruptedMeta struct {
	Context
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"`
}

// TimeoutMeta is the metadata of agent.timeout: a model did not answer in time.
type TimeoutMeta struct {
	Work
	Duration    float64 `json:"duration"` // seconds
	Timeout     int     `json:"timeout_seconds,omitempty"`
	ErrorCode   string  `json:"error_code"`
	ErrorType   string  `json:"error_type"`
	Attempt     int     `json:"attempt,omitempty"` // at the plan, task or aggregate
	MaxAttempts int     `json:"max_attempts,omitempty"`
	Recoverable bool    `json:"recoverable"`
}
