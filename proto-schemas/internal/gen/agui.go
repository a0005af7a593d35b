package gen

import (
	"reflect"

	"github.com/waggle-dev/waggle/proto-schemas/agui"
)

// aguiEvent is an event of AG-UI: a frame to the client.
type aguiEvent struct {
	kind, about string
	data        any
	needs       []string // members beside those that the type always has
}

// aguiEvents are the events that Waggle sends.
var aguiEvents = []aguiEvent{
	{agui.RunStarted, "a run begins.", agui.Boundary{}, []string{"protocolVersion"}},
	{agui.RunFinished, "a run has ended.", agui.Boundary{}, nil},
	{agui.RunError, "a run has failed.", agui.Failure{}, nil},
	{agui.StepStarted, "a step of a run begins.", agui.Step{}, nil},
	{agui.StepFinished, "a step of a run has ended.", agui.Step{}, nil},
	{agui.TextMessageStart, "a message begins.", agui.Text{}, []string{"role"}},
	{agui.TextMessageContent, "a message goes on.", agui.Text{}, []string{"delta"}},
	{agui.TextMessageEnd, "a message has ended.", agui.Text{}, nil},
	{agui.ReasoningStart, "the model begins to think.", agui.Text{}, nil},
	{agui.ReasoningMessageStart, "a thought begins.", agui.Text{}, []string{"role"}},
	{agui.ReasoningMessageContent, "a thought goes on.", agui.Text{}, []string{"delta"}},
	{agui.ReasoningMessageEnd, "a thought has ended.", agui.Text{}, nil},
	{agui.ReasoningEnd, "the model has thought.", agui.Text{}, nil},
	{agui.ToolCallStart, "a tool call begins.", agui.Call{}, []string{"toolCallName"}},
	{agui.ToolCallArgs, "the arguments of a tool call.", agui.Call{}, nil},
	{agui.ToolCallEnd, "a tool call is complete.", agui.Call{}, nil},
	{agui.ToolCallResult, "the result of a tool call.", agui.CallResult{}, nil},
	{agui.SubagentStarted, "a subagent begins.", agui.Subagent{}, []string{"name"}},
	{agui.SubagentFinished, "a subagent has ended, or waits for people.", agui.Subagent{}, nil},
	{agui.SubagentError, "a subagent has failed.", agui.Subagent{}, []string{"message"}},
	{agui.MessagesSnapshot, "all messages.", agui.Snapshot{}, nil},
	{agui.ActivitySnapshot, "the whole of an activity.", agui.Activity{}, []string{"content"}},
	{agui.ActivityDelta, "a change of an activity.", agui.Activity{}, []string{"patch"}},
	{agui.Custom, "an addition of Waggle.", agui.CustomEvent{}, nil},
}

// aguiRules hold what the Go types cannot say, by Type.member.
var aguiRules = map[string]node{
	"Message.content":    {"type": []string{"string", "array", "object"}},
	"ResumeEntry.status": {"enum": []string{agui.ResumeResolved, agui.ResumeCancelled}},
	"Operation.op":       {"enum": []string{"add", "replace", "remove"}},
}

// aguiBundle returns the bundle of AG-UI, whose types allow unknown members.
func aguiBundle(c *comments) ([]byte, error) {
	d := newDefinitions(c)
	d.value = func(owner reflect.Type, f reflect.StructField) node {
		name, _ := jsonName(f)
		if rule, ok := aguiRules[owner.Name()+"."+name]; ok {
			return with(d.of(f.Type), rule)
		}
		return nil
	}
	d.finish = func(t reflect.Type, s node, _ *members) {
		if t == reflect.TypeFor[agui.Input]() {
			s["required"] = []string{"threadId", "runId", "messages"}
		}
	}
	requests := []string{"run", "answers"}
	d.messages.set("in", anyOf("Bodies of requests, but for cancel: it may be any object.", requests))
	for i, body := range []any{agui.Input{}, agui.Answers{}} {
		d.messages.set(requests[i], with(d.ref(reflect.TypeOf(body)), node{}))
	}
	var kinds []string
	for _, e := range aguiEvents {
		kinds = append(kinds, e.kind)
	}
	d.messages.set("out", anyOf("Events, and answers in JSON.", append(kinds, "history", "capabilities")))
	for _, e := range aguiEvents {
		s := node{
			"description": "To the client: " + e.about,
			"allOf":       []node{d.ref(reflect.TypeOf(e.data))},
			"properties":  node{"type": node{"const": e.kind}},
		}
		if e.needs != nil {
			s["required"] = e.needs
		}
		d.messages.set(e.kind, s)
	}
	d.messages.set("history", d.ref(reflect.TypeFor[agui.History]()))
	d.messages.set("capabilities", d.ref(reflect.TypeFor[agui.Capabilities]()))
	return d.encode("agui", "Requests and events of AG-UI", []string{"in", "out"})
}
