package team

import (
	"encoding/json"
	"strings"

	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// toolPlan is how the question about a plan is called: it is asked like one about a tool.
const toolPlan = "plan"

// toolBudget is how the question is called whether a run gets its budget once more.
const toolBudget = "budget"

// toolQuestion is how the question of an agent of the swarm is called. The reason of the answer is what it is told.
const toolQuestion = "question"

// ofTools are the events of tool calls and of questions.
var ofTools = map[event.Type]build{
	event.InputRequested: with(inputRequested),
	event.InputAnswered:  with(inputAnswered),
	event.InputExpired:   with(inputExpired),
	event.ToolCalled:     with(toolCalled),
	event.ToolStarted:    with(toolStarted),
	event.ToolCompleted:  with(toolCompleted),
	event.ToolFailed:     with(toolFailed),
	event.ToolUnknown:    with(toolUnknown),
}

// fileTools are the tools whose calls have segments of their own, by the name that
// servers give them, with the argument that is the segment's content. Models know them
// as <server>_<name>.
var fileTools = map[string]struct{ segment, content string }{
	"write_file": {wire.SegmentWriteFile, "content"},
	"edit_file":  {wire.SegmentEditFile, "patch"},
	"patch_file": {wire.SegmentEditFile, "patch"},
	"run_bash":   {wire.SegmentRunBash, "command"},
}

// segments returns the whole segment of a tool call: its arguments are there at once.
func segments(callID, tool string, arguments json.RawMessage) []message {
	kind, delta := wire.SegmentToolCall, string(arguments)
	start, end := &wire.SegmentMetadata{ToolName: tool}, &wire.SegmentMetadata{ToolName: tool, Arguments: arguments}
	for name, t := range fileTools {
		content, ok := textAt(arguments, t.content)
		if tool != name && !strings.HasSuffix(tool, "_"+name) || !ok {
			continue
		}
		kind, delta = t.segment, content
		start.Path, _ = textAt(arguments, "path")
		end.Path = start.Path
	}
	return []message{
		{kind: wire.SegmentStart, data: &wire.SegmentStartPayload{ID: callID, SegmentType: kind, Metadata: start}},
		{kind: wire.SegmentContent, data: &wire.SegmentContentPayload{ID: callID, SegmentType: kind, Delta: delta}},
		{kind: wire.SegmentEnd, data: &wire.SegmentEndPayload{ID: callID, SegmentType: kind, Metadata: end}},
	}
}

// inputRequested asks whether a tool call may run, or a plan be carried out.
func inputRequested(at *scene, d event.InputRequestedData) []message {
	call, tool, arguments := d.CallID, d.Tool, object(d.Arguments)
	if d.Scope == event.ScopeClientTool { // an answer here could not carry the result
		return joined(segments(call, tool, arguments), at.status(tool), toolLog(call, tool, narrate.ClientTool(d)))
	}
	switch d.Scope {
	case event.ScopeTool:
	case event.ScopeBudget:
		call, tool, arguments = d.InputID, toolBudget, budgetArguments(d)
	case event.ScopeAgent:
		call, tool, arguments = d.InputID, toolQuestion, questionArguments(d.Summary, d.Options)
	default:
		list, _ := at.narrated() // the data have been read
		return list
	}
	return at.asked(call, tool, arguments, &wire.ApprovalPayload{TurnID: d.RunID, ApprovalToken: wire.ApprovalToken{InvocationVersion: d.Attempt, Digest: d.Digest}})
}

// asked is a question whether a call may run; it fills in the rest of p.
func (at *scene) asked(call, tool string, arguments json.RawMessage, p *wire.ApprovalPayload) []message {
	_, shows := place(at.outer.Subject)
	p.InvocationID, p.ToolName, p.Arguments, p.AgentID = call, tool, arguments, at.entity
	t := &p.ApprovalToken
	t.TeamRunID, t.RunVersion, t.InvocationID, t.InvocationVersion = shows, wire.RunVersion, call, max(t.InvocationVersion, 1)
	t.TargetMemberName = narrate.First(at.Via.Route, at.member(message{}))
	return joined(segments(call, tool, arguments), at.status(tool), one(wire.ToolApprovalRequested, p))
}

// budgetArguments say what a run has used up, as arguments of a call.
func budgetArguments(d event.InputRequestedData) json.RawMessage {
	b, err := wire.Encode(struct {
		Summary string           `json:"summary,omitempty"`
		Budget  *event.BudgetUse `json:"budget,omitempty"`
	}{d.Summary, d.Budget})
	if err != nil {
		panic("team: " + err.Error()) // Nothing in it is raw.
	}
	return b
}

// questionArguments are a question and its options, as arguments of a call.
func questionArguments(text string, options json.RawMessage) json.RawMessage {
	b, err := wire.Encode(struct {
		Message string          `json:"message"`
		Options json.RawMessage `json:"options,omitempty"`
	}{text, options})
	if err != nil {
		return object(nil) // the options are not JSON
	}
	return b
}

// inputAnswered is the one decision that counts.
func inputAnswered(at *scene, d event.InputAnsweredData) []message {
	if d.Scope == event.ScopeClientTool {
		return clientToolAnswered(at, d)
	}
	p := &wire.DecisionPayload{
		InvocationID: narrate.First(d.CallID, d.InputID), ToolName: d.Tool, TurnID: d.RunID, Reason: d.Feedback, By: d.By,
	}
	if d.CallID == "" {
		p.ToolName = toolPlan
	}
	p.ToolName = questionName(d.Scope, p.ToolName)
	status := at.status(p.ToolName)
	if d.Decision == event.DecisionReject {
		p.Error = fault.Lookup(fault.ToolDenied).Message
		return joined(status, one(wire.ToolDenied, p))
	}
	return joined(status, one(wire.ToolApproved, p))
}

// questionName is how a question of a scope is called: those about calls and plans have the other name.
func questionName(scope, other string) string {
	switch scope {
	case event.ScopeAgent, narrate.ScopeTask:
		return toolQuestion
	case event.ScopeBudget:
		return toolBudget
	}
	return other
}

// clientToolAnswered shows the outcome of a call that a client has carried out.
func clientToolAnswered(at *scene, d event.InputAnsweredData) []message {
	if d.Decision == event.DecisionReject {
		return at.toolFailure(d.RunID, d.CallID, d.Tool, string(fault.ToolFailed), d.Feedback)
	}
	return toolCompleted(at, event.ToolCompletedData{RunID: d.RunID, CallID: d.CallID, Tool: d.Tool, Result: d.Result})
}

func inputExpired(_ *scene, d event.InputExpiredData) []message {
	return one(wire.ToolDenied, &wire.DecisionPayload{
		InvocationID: d.InputID, ToolName: questionName(d.Scope, toolPlan), TurnID: d.RunID, Reason: string(fault.InputExpired),
		Error: fault.Lookup(fault.InputExpired).Message,
	})
}

// toolCalled shows the call, unless the question about it has.
func toolCalled(at *scene, d event.ToolCalledData) []message {
	arguments := object(d.Arguments)
	log := toolLog(d.CallID, d.Tool, "Calling "+d.Tool+" with "+string(arguments))
	if d.InputID != "" {
		return joined(at.status(d.Tool), log)
	}
	return joined(segments(d.CallID, d.Tool, arguments), at.status(d.Tool), one(wire.ToolAutoExecuting, &wire.InvocationPayload{
		InvocationID: d.CallID, ToolName: d.Tool, TurnID: d.RunID, Arguments: arguments,
	}), log)
}

func toolStarted(at *scene, d event.ToolStartedData) []message {
	p := &wire.StartedPayload{InvocationID: d.CallID, ToolName: d.Tool, TurnID: d.RunID, Retry: d.Retry}
	if len(d.Arguments) > 0 {
		p.Arguments = object(d.Arguments)
	}
	return joined(at.status(d.Tool), one(wire.ToolExecutionStarted, p))
}

func toolCompleted(at *scene, d event.ToolCompletedData) []message {
	return joined(toolLog(d.CallID, d.Tool, d.Result), one(wire.ToolExecutionSucceeded, &wire.SucceededPayload{
		InvocationID: d.CallID, ToolName: d.Tool, TurnID: d.RunID, Result: text(d.Result), DurationMS: d.DurationMS,
	}), at.status(d.Tool))
}

// toolFailed says it also as an ERROR where the tool itself has not said anything.
func toolFailed(at *scene, d event.ToolFailedData) []message {
	return at.toolFailure(d.RunID, d.CallID, d.Tool, narrate.First(d.Code, string(fault.ToolFailed)), d.Message)
}

func toolUnknown(at *scene, d event.ToolUnknownData) []message {
	return at.toolFailure(d.RunID, d.CallID, d.Tool, string(fault.ToolLost), d.Message)
}

func (at *scene) toolFailure(run, call, tool, code, why string) []message {
	code, why = narrate.Fault(code, why)
	list := toolLog(call, tool, "Failed: "+why)
	if code != string(fault.ToolFailed) && code != string(fault.ToolDenied) {
		list = append(list, failure(code, why)...)
	}
	return joined(list, one(wire.ToolExecutionFailed, &wire.FailedPayload{
		InvocationID: call, ToolName: tool, TurnID: run, Error: why, Code: code,
	}), at.status(tool))
}

func toolLog(call, tool, entry string) []message {
	return one(wire.ToolLog, &wire.ToolLogPayload{LogEntry: entry, ToolInvocationID: call, ToolName: tool})
}
