package fold

import "encoding/json"

// Types of chunks: the UI message stream protocol, version 1, of the packages ai 6 and 7. A client refuses a type that it does not
// know, so that only Options.Seven has those of 7.
const (
	Start               = "start"
	Finish              = "finish"
	Abort               = "abort"
	Error               = "error"
	MessageMetadata     = "message-metadata"
	StartStep           = "start-step"
	FinishStep          = "finish-step"
	ResetStep           = "reset-step" // 7: takes back what the step has shown
	TextStart           = "text-start"
	TextDelta           = "text-delta"
	TextEnd             = "text-end"
	ReasoningStart      = "reasoning-start"
	ReasoningDelta      = "reasoning-delta"
	ReasoningEnd        = "reasoning-end"
	ToolInputAvailable  = "tool-input-available"
	ToolApprovalRequest = "tool-approval-request"
	ToolOutputAvailable = "tool-output-available"
	ToolOutputError     = "tool-output-error"
	ToolOutputDenied    = "tool-output-denied"
	File                = "file"
	DataPlan            = "data-plan"
	DataStep            = "data-step"
	DataTodos           = "data-todos"
	DataArtifact        = "data-artifact"
	DataRetry           = "data-retry"
	DataNotice          = "data-notice"
	DataQueued          = "data-queued"
)

// Done is the last event of a stream. It is not JSON.
const Done = "[DONE]"

// Values of Chunk.FinishReason.
const (
	FinishStop     = "stop"
	FinishLength   = "length"
	FinishFiltered = "content-filter"
	FinishTools    = "tool-calls" // people, or the page, have to answer
	FinishError    = "error"
	FinishOther    = "other"
)

// Chunk is one event of a stream. Absent members are empty.
type Chunk struct {
	Type         string          `json:"type"`
	ID           string          `json:"id,omitempty"` // of a text, of reasoning, or of data
	MessageID    string          `json:"messageId,omitempty"`
	Delta        string          `json:"delta,omitempty"`
	ToolCallID   string          `json:"toolCallId,omitempty"`
	ToolName     string          `json:"toolName,omitempty"`
	Dynamic      bool            `json:"dynamic,omitempty"` // the page does not know the tool
	Title        string          `json:"title,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	ErrorText    string          `json:"errorText,omitempty"`
	Code         string          `json:"code,omitempty"`      // of an error
	Resumable    bool            `json:"resumable,omitempty"` // of an error: the run continues, and the client may resume its stream
	ApprovalID   string          `json:"approvalId,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	URL          string          `json:"url,omitempty"`
	MediaType    string          `json:"mediaType,omitempty"`
	Data         any             `json:"data,omitempty"`
	Transient    bool            `json:"transient,omitempty"` // no message keeps it
	FinishReason string          `json:"finishReason,omitempty"`
	Metadata     *Metadata       `json:"messageMetadata,omitempty"`
	Provider     *Provider       `json:"providerMetadata,omitempty"`
}

// Metadata is the metadata of a message of the assistant.
type Metadata struct {
	CreatedAt  string   `json:"createdAt,omitempty"`
	Outcome    string   `json:"outcome,omitempty"`    // success, partial_success, rejected, timeout, cancelled, failed
	StopReason string   `json:"stopReason,omitempty"` // of an answer that is not complete: length, filtered, refused, other
	Usage      *Usage   `json:"usage,omitempty"`
	Error      *Failure `json:"error,omitempty"` // of a run that has failed
	// Stretch is the newest stretch that the client has to its end: with its answers, the client says where it stands.
	Stretch int `json:"stretch,omitempty"`
}

// Usage is the tokens that the models of a run have taken.
type Usage struct {
	InputTokens       int64 `json:"inputTokens"`
	OutputTokens      int64 `json:"outputTokens"`
	TotalTokens       int64 `json:"totalTokens"`
	ReasoningTokens   int64 `json:"reasoningTokens,omitempty"`
	CachedInputTokens int64 `json:"cachedInputTokens,omitempty"`
}

// Queued is the data of a part data-queued, which no message keeps: the message waits for its turn.
type Queued struct {
	RunID string `json:"runId"`
	Ahead int    `json:"ahead"` // runs
}

// Failure is why a run has failed.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Provider is the providerMetadata of texts and reasoning.
type Provider struct {
	Waggle Origin `json:"waggle"`
}

// Origin says where a text comes from.
type Origin struct {
	StepID    string `json:"stepId,omitempty"`    // the step of a plan
	Discarded bool   `json:"discarded,omitempty"` // the model begins anew: the text does not count
}

// Plan is the data of a part data-plan.
type Plan struct {
	PlanID  string `json:"planId"`
	Summary string `json:"summary,omitempty"`
	Steps   []Step `json:"steps"`
}

// Step is a step of a plan. Its part data-step has its state.
type Step struct {
	ID           string   `json:"id"`
	Title        string   `json:"title"`
	Description  string   `json:"description,omitempty"`
	Dependencies []string `json:"dependencies,omitempty"`
}

// StepState is the data of a part data-step.
type StepState struct {
	StepID  string `json:"stepId"`
	Title   string `json:"title,omitempty"`
	Status  string `json:"status"` // pending, running, completed, failed, cancelled
	Output  string `json:"output,omitempty"`
	Message string `json:"message,omitempty"` // why it has no output
}

// Statuses of a step.
const (
	stepPending   = "pending"
	stepRunning   = "running"
	stepCompleted = "completed"
	stepFailed    = "failed"
	stepCancelled = "cancelled"
)
