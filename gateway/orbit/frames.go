package orbit

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"

	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/orbit"
)

// frames maps the types of events to what they are on the wire. A function returns
// no frame for an event that this protocol has no word for.
type frames map[event.Type]func(event.Event) ([]byte, error)

// answers are the frames of the original protocol.
var answers = frames{
	event.RunStarted:    with(userInput),
	event.JobStarted:    with(agentThinking),
	event.ToolCalled:    with(toolCalled),
	event.ToolStarted:   with(toolExecuting),
	event.ToolCompleted: with(toolCompleted),
	event.ToolFailed:    with(toolFailed),
	event.ToolUnknown:   with(toolUnknown),
	event.RunCompleted:  with(agentResponse),

	event.ReasoningCompleted: with(reasoningCompleted),
	event.RunFailed:          with(runFailed),
	event.RunCancelled:       with(runCancelled),
}

// deltas are the frames that a client asks for with deltas=true.
var deltas = frames{
	event.MessageDelta:     with(agentDelta),
	event.ReasoningDelta:   with(thinkingDelta),
	event.MessageDiscarded: with(deltaDiscarded),
}

func join(a, b frames) frames {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

// with decodes the event's data for f.
func with[T event.Data](f func(event.Event, T) ([]byte, error)) func(event.Event) ([]byte, error) {
	return func(e event.Event) ([]byte, error) {
		d, err := eventdata.As[T](e)
		if err != nil {
			return nil, err
		}
		return f(e, d)
	}
}

// frame reports e as a frame of its run. A run that never started has no execution
// id, and its frames have no such member.
func frame[D any](kind, exec string, e event.Event, data D) ([]byte, error) {
	f := wire.Frame[D]{Type: kind, Seq: e.Sequence, Timestamp: stamp(e.Time), Agent: e.Via.Route, Data: data}
	if exec != "" {
		x := wire.ExecutionID(exec)
		f.ExecutionID = &x
	}
	return f.Encode()
}

func userInput(e event.Event, d event.RunStartedData) ([]byte, error) {
	return frame(wire.UserInput, d.ExecutionID, e, wire.MessageData{Message: d.Content})
}

// agentThinking is said once per run: a takeover tells a user nothing new.
func agentThinking(e event.Event, d event.JobStartedData) ([]byte, error) {
	if d.Resumed {
		return nil, nil
	}
	return frame(wire.AgentThinking, d.ExecutionID, e, wire.ThoughtData{Message: wire.ThinkingText})
}

func toolCalled(e event.Event, d event.ToolCalledData) ([]byte, error) {
	args, err := arguments(d.Arguments)
	if err != nil {
		return nil, err
	}
	description := d.Description
	if description == "" {
		description = "Executing " + d.Tool
	}
	return frame(wire.ToolCalled, d.ExecutionID, e, wire.ToolCalledData{
		ToolName: d.Tool, Description: description, Arguments: args,
	})
}

// toolExecuting is said once per call: a retry by another worker tells a user nothing new.
func toolExecuting(e event.Event, d event.ToolStartedData) ([]byte, error) {
	if d.Retry {
		return nil, nil
	}
	return frame(wire.ToolExecuting, d.ExecutionID, e, wire.ToolExecutingData{
		ToolName: d.Tool, Status: wire.StatusExecuting,
	})
}

func toolCompleted(e event.Event, d event.ToolCompletedData) ([]byte, error) {
	text := d.Result
	if text == "" {
		text = "Tool executed successfully"
	}
	return toolResult(e, d.ExecutionID, d.Tool, text)
}

// toolFailed says in words what the protocol's fixed status cannot.
func toolFailed(e event.Event, d event.ToolFailedData) ([]byte, error) {
	return toolResult(e, d.ExecutionID, d.Tool, "Failed: "+narrate.First(d.Message, d.Code))
}

func toolUnknown(e event.Event, d event.ToolUnknownData) ([]byte, error) {
	return toolResult(e, d.ExecutionID, d.Tool, "Outcome unknown: "+narrate.First(d.Message, string(fault.ToolLost)))
}

func toolResult(e event.Event, exec, tool, text string) ([]byte, error) {
	return frame(wire.ToolResult, exec, e, wire.ToolResultData{
		ToolName: tool, Status: wire.StatusCompleted, Result: preview(text),
	})
}

func agentResponse(e event.Event, d event.RunCompletedData) ([]byte, error) {
	return frame(wire.AgentResponse, d.ExecutionID, e, wire.ResponseData{
		Message: d.Content, ExecutionCompleted: true, StopReason: d.StopReason,
	})
}

func runFailed(e event.Event, d event.RunFailedData) ([]byte, error) {
	code, message := narrate.Fault(d.Code, d.Message)
	return errorFrame(e, d.ExecutionID, code, "Agent processing failed: "+message)
}

func runCancelled(e event.Event, d event.RunCancelledData) ([]byte, error) {
	message := fault.Lookup(fault.RunCancelled).Message
	if d.Reason != "" {
		message += " (reason: " + d.Reason + ")"
	}
	return errorFrame(e, d.ExecutionID, string(fault.RunCancelled), message)
}

func errorFrame(e event.Event, exec, code, message string) ([]byte, error) {
	return frame(wire.Error, exec, e, wire.ErrorData{Message: message, Code: code})
}

func agentDelta(e event.Event, d event.MessageDeltaData) ([]byte, error) {
	return frame(wire.AgentDelta, d.ExecutionID, e, wire.DeltaData{MessageID: d.MessageID, Text: d.Text})
}

func thinkingDelta(e event.Event, d event.ReasoningDeltaData) ([]byte, error) {
	return frame(wire.ThinkingDelta, d.ExecutionID, e, wire.DeltaData{MessageID: d.MessageID, Text: d.Text})
}

// reasoningCompleted says the whole reasoning at once, as the text of a message is said.
func reasoningCompleted(e event.Event, d event.ReasoningCompletedData) ([]byte, error) {
	if d.Content == "" {
		return nil, nil
	}
	return frame(wire.AgentThinking, d.ExecutionID, e, wire.ThoughtData{Message: d.Content, MessageID: d.MessageID})
}

func deltaDiscarded(e event.Event, d event.MessageDiscardedData) ([]byte, error) {
	return frame(wire.DeltaDiscarded, d.ExecutionID, e, wire.DiscardedData{MessageID: d.MessageID, Reason: d.Reason})
}

// arguments returns raw as a JSON object, which is all that the protocol allows.
// Nothing is {}, and a value of another kind becomes its member "value".
func arguments(raw json.RawMessage) (json.RawMessage, error) {
	raw = bytes.ToValidUTF8(bytes.TrimSpace(raw), []byte("\ufffd"))
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return json.RawMessage("{}"), nil
	case raw[0] == '{':
		return raw, nil
	}
	return json.Marshal(struct {
		Value json.RawMessage `json:"value"`
	}{raw})
}

// preview cuts a text at the protocol's limit, between characters.
func preview(s string) string {
	n := 0
	for i := range s {
		if n == wire.PreviewLimit {
			return s[:i] + "..."
		}
		n++
	}
	return s
}

func stamp(t time.Time) wire.Timestamp { return wire.Timestamp{Time: t} }
