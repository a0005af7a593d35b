// Package agui has the wire types of AG-UI 1.0 (https://docs.ag-ui.com), as far as Waggle serves the protocol: the input of a
// run, and the events of its response. Events are JSON objects in server-sent events, one in each.
package agui

import (
	"encoding/json"
	"slices"
	"strings"
)

// Version is the version of the protocol that Waggle speaks.
const Version = "1.0"

// Types of events.
const (
	RunStarted  = "RUN_STARTED"
	RunFinished = "RUN_FINISHED"
	RunError    = "RUN_ERROR"

	StepStarted  = "STEP_STARTED"
	StepFinished = "STEP_FINISHED"

	TextMessageStart   = "TEXT_MESSAGE_START"
	TextMessageContent = "TEXT_MESSAGE_CONTENT"
	TextMessageEnd     = "TEXT_MESSAGE_END"

	ReasoningStart          = "REASONING_START"
	ReasoningMessageStart   = "REASONING_MESSAGE_START"
	ReasoningMessageContent = "REASONING_MESSAGE_CONTENT"
	ReasoningMessageEnd     = "REASONING_MESSAGE_END"
	ReasoningEnd            = "REASONING_END"

	ToolCallStart  = "TOOL_CALL_START"
	ToolCallArgs   = "TOOL_CALL_ARGS"
	ToolCallEnd    = "TOOL_CALL_END"
	ToolCallResult = "TOOL_CALL_RESULT"

	SubagentStarted  = "SUBAGENT_STARTED"
	SubagentFinished = "SUBAGENT_FINISHED"
	SubagentError    = "SUBAGENT_ERROR"

	MessagesSnapshot = "MESSAGES_SNAPSHOT"
	ActivitySnapshot = "ACTIVITY_SNAPSHOT"
	ActivityDelta    = "ACTIVITY_DELTA"
	Custom           = "CUSTOM"
)

// Roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
	RoleReasoning = "reasoning"
	RoleActivity  = "activity"
	RoleSystem    = "system"
	RoleDeveloper = "developer"
)

// Outcomes of a run, and of a subagent.
const (
	OutcomeSuccess   = "success"
	OutcomeInterrupt = "interrupt"
	OutcomeCancelled = "cancelled"
	OutcomeSuspended = "suspended"
)

// Reasons of interrupts.
const (
	ReasonToolCall      = "tool_call"
	ReasonConfirmation  = "confirmation"
	ReasonInputRequired = "input_required"
	ReasonBudget        = "waggle:budget"
)

// Types of activities, and names of custom events.
const (
	ActivityPlan     = "waggle.plan"
	ActivityQuestion = "waggle.question"
	ActivitySubagent = "waggle.subagent"
	ActivityArtifact = "waggle.artifact"
	ActivityTodos    = "waggle.todos"
	ActivityBoard    = "waggle.board"
	ActivityTeam     = "waggle.team"

	CustomQueued        = "waggle.queued"
	CustomAnswered      = "waggle.answered"
	CustomAnswerRefused = "waggle.answer_refused"
	CustomPlanInvalid   = "waggle.plan_invalid"
	CustomPlanCancelled = "waggle.plan_cancelled"
	CustomRetry         = "waggle.retry"
	CustomNotice        = "waggle.notice"
	CustomError         = "waggle.error"
	CustomHistory       = "waggle.history"
	CustomMessage       = "waggle.message"
)

// Statuses of a resume entry.
const (
	ResumeResolved  = "resolved"
	ResumeCancelled = "cancelled"
)

// Base are the members that all events have.
type Base struct {
	Type      string    `json:"type"`
	Timestamp int64     `json:"timestamp,omitempty"` // ms since the epoch: the time of the log's event
	Metadata  *Metadata `json:"metadata,omitempty"`
}

// Metadata is what Waggle adds to events and interrupts.
type Metadata struct {
	Waggle any `json:"waggle"`
}

// Origin says which event of the log a frame was made of.
type Origin struct {
	Seq     uint64 `json:"seq"`               // in the log: 1, 2, 3, ...; 0 = it has no events
	Time    string `json:"time,omitempty"`    // RFC 3339, UTC, ms; absent without an event
	RunID   string `json:"runId,omitempty"`   // Waggle's run, which may have several stretches
	Attempt int    `json:"attempt,omitempty"` // of the worker: 1, 2, ...
	Member  string `json:"member,omitempty"`  // of a team: its path of names
	Failed  bool   `json:"failed,omitempty"`  // of the result of a tool: it is an error
	Code    string `json:"code,omitempty"`    // with Failed: from the error catalogue

	StopReason string `json:"stopReason,omitempty"` // of the end of a text that is not complete: length, filtered, refused, other, stopped
}

// Boundary begins or ends a run. Which of the optional members it has depends on its type.
type Boundary struct {
	Base
	ThreadID        string       `json:"threadId"`
	RunID           string       `json:"runId"`
	ProtocolVersion string       `json:"protocolVersion,omitempty"`
	ParentRunID     string       `json:"parentRunId,omitempty"`
	Input           *Input       `json:"input,omitempty"`
	Result          *Result      `json:"result,omitempty"`
	Outcome         *Outcome     `json:"outcome,omitempty"`
	Usage           []TokenUsage `json:"usage,omitempty"`
}

// Result of a run that has an answer.
type Result struct {
	Outcome   string `json:"outcome"`             // success, partial_success, rejected, timeout
	MessageID string `json:"messageId,omitempty"` // the message that holds the answer

	StopReason string `json:"stopReason,omitempty"` // of an answer that is not complete: length, filtered, refused, other
}

// Outcome is how a run ended.
type Outcome struct {
	Type               string      `json:"type"`
	PendingToolCallIDs []string    `json:"pendingToolCallIds,omitempty"` // success: calls that the client has to carry out
	Interrupts         []Interrupt `json:"interrupts,omitempty"`         // interrupt: the open questions
}

// Interrupt is a question.
type Interrupt struct {
	ID             string          `json:"id"`
	Reason         string          `json:"reason"`
	Message        string          `json:"message,omitempty"`
	ToolCallID     string          `json:"toolCallId,omitempty"`
	SubagentRunID  string          `json:"subagentRunId,omitempty"`
	ResponseSchema json.RawMessage `json:"responseSchema,omitempty"`
	ExpiresAt      string          `json:"expiresAt,omitempty"` // RFC 3339
	Metadata       *Metadata       `json:"metadata,omitempty"`
}

// TokenUsage is the consumption of one model.
type TokenUsage struct {
	Model        string `json:"model"`
	InputTokens  int64  `json:"inputTokens,omitempty"` // absent: the provider does not count
	OutputTokens int64  `json:"outputTokens,omitempty"`
	TotalTokens  int64  `json:"totalTokens,omitempty"`

	ReasoningTokens       int64 `json:"reasoningTokens,omitempty"`       // of the output
	CachedInputTokens     int64 `json:"cachedInputTokens,omitempty"`     // of the input: read from the provider's cache
	CacheWriteInputTokens int64 `json:"cacheWriteInputTokens,omitempty"` // of the input: written to the provider's cache
}

// Failure ends a run with an error.
type Failure struct {
	Base
	Message string       `json:"message"`
	Code    string       `json:"code,omitempty"`
	Usage   []TokenUsage `json:"usage,omitempty"`
}

// Step begins or ends a step.
type Step struct {
	Base
	StepName      string `json:"stepName"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// Text begins, continues or ends a message of text or of reasoning.
type Text struct {
	Base
	MessageID     string `json:"messageId"`
	Role          string `json:"role,omitempty"`
	Name          string `json:"name,omitempty"`
	Delta         string `json:"delta,omitempty"`
	SubagentRunID string `json:"subagentRunId,omitempty"`
}

// Call begins, continues or ends a tool call.
type Call struct {
	Base
	ToolCallID      string `json:"toolCallId"`
	ToolCallName    string `json:"toolCallName,omitempty"`
	ParentMessageID string `json:"parentMessageId,omitempty"`
	Delta           string `json:"delta,omitempty"`
	SubagentRunID   string `json:"subagentRunId,omitempty"`
}

// CallResult is the result of a tool call.
type CallResult struct {
	Base
	MessageID     string          `json:"messageId"`
	ToolCallID    string          `json:"toolCallId"`
	Content       json.RawMessage `json:"content"` // a text, or a list of parts
	Role          string          `json:"role"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
}

// Subagent begins or ends the work of a subagent.
type Subagent struct {
	Base
	SubagentRunID       string           `json:"subagentRunId"`
	Name                string           `json:"name,omitempty"`
	Description         string           `json:"description,omitempty"`
	ParentSubagentRunID string           `json:"parentSubagentRunId,omitempty"`
	Result              *SubagentResult  `json:"result,omitempty"`
	Outcome             *SubagentOutcome `json:"outcome,omitempty"`
	Message             string           `json:"message,omitempty"`
	Code                string           `json:"code,omitempty"`
}

// SubagentResult is the output of a subagent.
type SubagentResult struct {
	Output string `json:"output"`
}

// SubagentOutcome is how a subagent ended.
type SubagentOutcome struct {
	Type         string   `json:"type"`
	InterruptIDs []string `json:"interruptIds,omitempty"` // suspended: the questions that it waits for
}

// Snapshot has all messages.
type Snapshot struct {
	Base
	Messages []Message `json:"messages"`
}

// Activity replaces or changes an activity.
type Activity struct {
	Base
	MessageID     string      `json:"messageId"`
	ActivityType  string      `json:"activityType"`
	Content       any         `json:"content,omitempty"` // snapshot: an object
	Patch         []Operation `json:"patch,omitempty"`   // delta
	SubagentRunID string      `json:"subagentRunId,omitempty"`
}

// Operation is one of a JSON Patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// CustomEvent is an event that the protocol has no form for.
type CustomEvent struct {
	Base
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// Message is one of a thread's history.
type Message struct {
	ID            string          `json:"id"`
	Role          string          `json:"role"`
	Name          string          `json:"name,omitempty"`
	ActivityType  string          `json:"activityType,omitempty"`
	Content       json.RawMessage `json:"content,omitempty"` // a string, or parts; of an activity an object
	ToolCalls     []ToolCall      `json:"toolCalls,omitempty"`
	ToolCallID    string          `json:"toolCallId,omitempty"`
	Error         string          `json:"error,omitempty"`
	SubagentRunID string          `json:"subagentRunId,omitempty"`
	Metadata      *Metadata       `json:"metadata,omitempty"` // of a text that is not complete: a Stop
}

// Stop is why a message is not complete, as the end of its text has said (Origin).
type Stop struct {
	StopReason string `json:"stopReason"` // length, filtered, refused, other, stopped
}

// ToolCall is a call that an assistant's message asks for.
type ToolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"` // function
	Function Function `json:"function"`
}

// Function is a tool with the arguments of a call, a JSON text.
type Function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Input asks for a run.
type Input struct {
	ThreadID        string          `json:"threadId"`
	RunID           string          `json:"runId"`
	ProtocolVersion string          `json:"protocolVersion,omitempty"`
	ParentRunID     string          `json:"parentRunId,omitempty"`
	State           json.RawMessage `json:"state,omitempty"`
	Messages        []Message       `json:"messages"`
	Tools           []Tool          `json:"tools"`
	Context         []Context       `json:"context"`
	ForwardedProps  json.RawMessage `json:"forwardedProps,omitempty"`
	Resume          []ResumeEntry   `json:"resume,omitempty"`
}

// Tool is one that the client carries out.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // JSON Schema
}

// Context is a fact for the model.
type Context struct {
	Description string `json:"description"`
	Value       string `json:"value"`
}

// ResumeEntry answers an interrupt.
type ResumeEntry struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"` // resolved, cancelled
	Payload     json.RawMessage `json:"payload,omitempty"`
}

// Part of a user's message.
type Part struct {
	Type     string          `json:"type"` // text, image, audio, video, document; before 1.0 also binary
	Text     string          `json:"text,omitempty"`
	Source   *Source         `json:"source,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // filename: the name of the file

	MimeType string `json:"mimeType,omitempty"` // of binary, as all that follow
	URL      string `json:"url,omitempty"`
	Data     string `json:"data,omitempty"` // base64
	Filename string `json:"filename,omitempty"`
}

// PartBinary is the type of parts that only clients before 1.0 have.
const PartBinary = "binary"

// MediaParts are the types of parts that have a source.
var MediaParts = []string{"image", "audio", "video", "document"}

// Sourced returns a part of the type binary in the form of 1.0.
func (p Part) Sourced() Part {
	out := Part{Type: "document", Metadata: p.Metadata, Filename: p.Filename}
	if kind, _, _ := strings.Cut(p.MimeType, "/"); slices.Contains(MediaParts, kind) {
		out.Type = kind
	}
	switch {
	case p.Data != "":
		out.Source = &Source{Type: "data", Value: p.Data, MimeType: p.MimeType}
	case p.URL != "":
		out.Source = &Source{Type: "url", Value: p.URL, MimeType: p.MimeType}
	}
	return out
}

// Label returns the name of the file, empty if it has none.
func (p Part) Label() string {
	var about struct {
		Filename string `json:"filename"`
	}
	if p.Filename == "" && len(p.Metadata) > 0 && json.Unmarshal(p.Metadata, &about) == nil {
		return about.Filename
	}
	return p.Filename
}

// Source of a part that is not text.
type Source struct {
	Type     string `json:"type"` // url, data, file
	Value    string `json:"value"`
	MimeType string `json:"mimeType,omitempty"`
}

// Cancel is the body of a request that stops a run.
type Cancel struct {
	RunID  string `json:"runId,omitempty"`        // empty = the active run
	TaskID string `json:"taskId,omitempty"`       // only one task of its plan
	Member string `json:"targetMember,omitempty"` // of a team: only one member
	Reason string `json:"reason,omitempty"`
}

// Answers is the body of a request that answers interrupts during a run.
type Answers struct {
	Resume []ResumeEntry `json:"resume"`
	ID     string        `json:"id,omitempty"` // the client's id for them: a repeat has the same and gets the same response
}

// History is a page of a thread's messages, oldest first.
type History struct {
	Messages []Message `json:"messages"`
	Before   string    `json:"before,omitempty"` // of the page before this one; absent at the beginning
}

// Capabilities say what an agent can do.
type Capabilities struct {
	Identity       Identity       `json:"identity"`
	Transport      TransportCaps  `json:"transport"`
	Tools          ToolCaps       `json:"tools"`
	State          StateCaps      `json:"state"`
	MultiAgent     MultiAgentCaps `json:"multiAgent"`
	Reasoning      ReasoningCaps  `json:"reasoning"`
	HumanInTheLoop HumanCaps      `json:"humanInTheLoop"`
}

// Identity names an agent.
type Identity struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version,omitempty"`
}

// TransportCaps are the abilities of the transport.
type TransportCaps struct {
	Streaming bool `json:"streaming"`
	Resumable bool `json:"resumable"`
	WebSocket bool `json:"websocket"`
}

// ToolCaps are the abilities with tools.
type ToolCaps struct {
	Supported      bool   `json:"supported"`
	ClientProvided bool   `json:"clientProvided"`
	ParallelCalls  bool   `json:"parallelCalls"`
	Items          []Tool `json:"items,omitempty"`
}

// StateCaps are the abilities with shared state.
type StateCaps struct {
	Snapshots       bool `json:"snapshots"`
	Deltas          bool `json:"deltas"`
	PersistentState bool `json:"persistentState"`
}

// MultiAgentCaps are the abilities with other agents.
type MultiAgentCaps struct {
	Supported  bool           `json:"supported"`
	Delegation bool           `json:"delegation"`
	Subagents  []SubagentInfo `json:"subagents,omitempty"`
}

// SubagentInfo names a subagent.
type SubagentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// ReasoningCaps are the abilities with reasoning.
type ReasoningCaps struct {
	Supported bool `json:"supported"`
	Streaming bool `json:"streaming"`
}

// HumanCaps are the abilities with people.
type HumanCaps struct {
	Supported        bool `json:"supported"`
	Approvals        bool `json:"approvals"`
	Interventions    bool `json:"interventions"`
	Feedback         bool `json:"feedback"`
	Interrupts       bool `json:"interrupts"`
	ApproveWithEdits bool `json:"approveWithEdits"`
}
