package waggle

import (
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
	"github.com/waggle-dev/waggle/sdk/go/waggle/orbit"
)

// ofOrbit returns the event that a frame of a chat is.
func ofOrbit(f orbit.Frame) Event {
	e := Event{Seq: f.Seq, Run: f.Execution(), Raw: f.Raw}
	switch f.Type {
	case wire.UserInput:
		e.Data = Accepted{Text: orbit.As[wire.MessageData](f).Message}
	case wire.AgentThinking:
		e.Data = thought(orbit.As[wire.ThoughtData](f))
	case wire.AgentDelta:
		d := orbit.As[wire.DeltaData](f)
		e.Data = Delta{MessageID: d.MessageID, Text: d.Text, Answer: true}
	case wire.ThinkingDelta:
		d := orbit.As[wire.DeltaData](f)
		e.Data = Reasoning{MessageID: d.MessageID, Text: d.Text}
	case wire.DeltaDiscarded:
		e.Data = Discarded{MessageID: orbit.As[wire.DiscardedData](f).MessageID}
	case wire.ToolCalled:
		d := orbit.As[wire.ToolCalledData](f)
		e.Data = ToolCall{Name: d.ToolName, Args: d.Arguments}
	case wire.ToolResult:
		d := orbit.As[wire.ToolResultData](f)
		e.Data = ToolResult{Name: d.ToolName, Output: d.Result}
	case wire.AgentResponse:
		d := orbit.As[wire.ResponseData](f)
		e.Data = Answer{Text: d.Message, Status: "success", StopReason: d.StopReason}
	case wire.Error:
		d := orbit.As[wire.ErrorData](f)
		if d.FirstSeq > 0 {
			e.Data = Notice{Code: d.Code, Text: d.Message}
		} else {
			e.Data = Failure{Err: &Error{Code: d.Code, Message: d.Message, Field: d.Field}, End: true}
		}
	}
	return e
}

func thought(d wire.ThoughtData) any {
	switch {
	case d.Question != nil:
		return Question{
			ID: d.Question.ID, Scope: d.Question.Scope, Text: d.Message, Tool: d.Question.Tool, Args: d.Question.Arguments,
			Timeout: seconds(d.Question.TimeoutSeconds),
		}
	case d.MessageID != "":
		return Reasoning{MessageID: d.MessageID, Text: d.Message, Whole: true}
	case d.Code != "":
		return Notice{Code: d.Code, Text: d.Message}
	}
	return Thinking{Text: d.Message}
}
