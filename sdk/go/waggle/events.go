package waggle

import (
	"encoding/json"
	"time"

	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// Step is one step of a plan.
type Step = wire.Task

// Event is something that has happened in a session.
type Event struct {
	Seq  uint64 // position in the session; 0 = news for this client alone
	Run  string // the run that it belongs to, if any
	Step string // the id of the step of a plan that it belongs to, if any
	// Data is one of the types below, or nil for other events, which Raw holds.
	Data any
	Raw  json.RawMessage // the frame as it came
}

// Types of events. Answer, Failure with End, and Cancelled end a run.
type (
	// Accepted says that a message counts, and begins its run.
	Accepted struct {
		MessageID string // empty in chats
		Text      string
	}
	// Thinking says that a model is at work.
	Thinking struct{ Text string }
	// Reasoning is a piece of what a model thinks before and between the texts of a message, or all of it. It never
	// belongs to an answer.
	Reasoning struct {
		MessageID string
		Text      string
		Whole     bool // it replaces the pieces
	}
	// Delta is a piece of a text: the pieces of one message, joined, are the text so far.
	Delta struct {
		MessageID string
		Text      string
		Answer    bool // of the answer, and not of the work on a step
	}
	// Discarded says that the text and the reasoning so far do not count: the model is asked again.
	Discarded struct{ MessageID string }
	// ToolCall says that a tool is called.
	ToolCall struct {
		ID, Name string // the id is empty in chats
		Args     json.RawMessage
	}
	// ToolResult is what came of a call: a preview.
	ToolResult struct {
		ID, Name      string // the id is empty in chats
		Output, Error string
	}
	// Plan is a planner's plan for a message.
	Plan struct {
		Steps   []Step
		Summary string
	}
	// PlanRejected says that a plan, of the planner or of a person, cannot be used.
	PlanRejected struct {
		Message  string
		Question string // the one that is still open, if a person's answer is meant
	}
	// PlanCancelled says that a plan is not carried out.
	PlanCancelled struct{ Reason string }
	// Question waits for Session.Answer.
	Question struct {
		ID      string
		Scope   string // plan, tool, budget, or task: an agent asks
		Text    string
		Steps   []Step          // of scope plan
		Tool    string          // of scope tool
		Args    json.RawMessage // of scope tool
		Timeout time.Duration   // 0 = it stays open
	}
	// Answered says whose answer to a question counts.
	Answered struct{ Question, Decision, By string }
	// StepStarted says that a step has begun.
	StepStarted struct{ Step Step }
	// StepCompleted is the result of a step.
	StepCompleted struct {
		StepID, Output string
		Took           time.Duration
	}
	// StepFailed says that the last attempt at a step has failed.
	StepFailed struct{ StepID, Message string }
	// StepCancelled says that a step is not carried out.
	StepCancelled struct{ StepID, Reason string }
	// StepRestarted says that a step is tried again.
	StepRestarted struct {
		StepID               string
		Attempt, MaxAttempts int
	}
	// Answer is the answer to a message.
	Answer struct {
		Text    string
		Status  string // success, partial_success, failed, rejected, cancelled, timeout
		Tokens  int64  // 0 = not known
		CostUSD float64

		StopReason string // of an answer that is not complete: length, filtered, refused, other
	}
	// Failure is an error.
	Failure struct {
		Err       *Error
		End       bool   // of the run, or of a message that was not accepted
		MessageID string // of that message, if known
	}
	// Cancelled says that a run was stopped.
	Cancelled struct{ Text string }
	// Notice is a notice for people, such as NO_WORKER: no worker runs.
	Notice struct{ Code, Text string }
	// Lost says that the connection is lost and will be made again.
	Lost struct{ Err error }
)

// ends reports whether the event ends its run.
func (e Event) ends() bool {
	switch d := e.Data.(type) {
	case Answer, Cancelled:
		return true
	case Failure:
		return d.End
	}
	return false
}
