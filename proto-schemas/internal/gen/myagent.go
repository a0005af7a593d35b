package gen

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// shape holds the types of the content and the metadata of an event to the client. Content is nil for an event
// without one.
type shape struct{ content, metadata any }

// echo marks the schema of the server's form of an event that goes both ways.
const echo = ".echo"

// myagentOutbox are the events to the client.
var myagentOutbox = map[string]shape{
	myagent.UserMessage + echo:    {"", myagent.EchoMeta{}},
	myagent.UserSolveTasks + echo: {myagent.Tasks{}, myagent.EchoMeta{}},
	myagent.PlanStart:             {myagent.PlanStartContent{}, myagent.PlanStartMeta{}},
	myagent.PlanCompleted:         {myagent.Tasks{}, myagent.PlanCompletedMeta{}},
	myagent.PlanCancelled:         {"", myagent.PlanCancelledMeta{}},
	myagent.PlanCoercionError:     {"", myagent.CoercionMeta{}},
	myagent.SolverStart:           {myagent.SolverStartContent{}, myagent.SolverStartMeta{}},
	myagent.SolverProgress:        {myagent.SolverProgressContent{}, myagent.SolverProgressMeta{}},
	myagent.SolverCompleted:       {myagent.SolverCompletedContent{}, myagent.SolverCompletedMeta{}},
	myagent.SolverStepFailed:      {myagent.StepFailedContent{}, myagent.StepFailedMeta{}},
	myagent.SolverCancelled:       {myagent.TaskRef{}, myagent.SolverCancelledMeta{}},
	myagent.SolverRestarted:       {myagent.SolverRestartedContent{}, myagent.SolverRestartedMeta{}},
	myagent.SolverRetry:           {myagent.SolverRetryContent{}, myagent.SolverRetryMeta{}},
	myagent.AgentThinking:         {"", myagent.ThinkingMeta{}},
	myagent.AgentToolCall:         {"", myagent.ToolCallMeta{}},
	myagent.AgentToolResult:       {"", myagent.ToolResultMeta{}},
	myagent.AgentPartialAnswer:    {"", myagent.PartialAnswerMeta{}},
	myagent.AgentFinalAnswer:      {"", myagent.FinalAnswerMeta{}},
	myagent.AgentUserConfirm:      {"", myagent.ConfirmMeta{}},
	myagent.AgentError:            {"", myagent.ErrorMeta{}},
	myagent.AgentInterrupted:      {"", myagent.InterruptedMeta{}},
	myagent.AgentTimeout:          {"", myagent.TimeoutMeta{}},
	myagent.AgentSessionCreated:   {myagent.SessionCreatedContent{}, myagent.SessionCreatedMeta{}},
	myagent.AgentSessionEnd:       {"", myagent.SessionEndMeta{}},
	myagent.AgentStateExported:    {nil, myagent.StateExportedMeta{}},
	myagent.AgentStateRestored:    {"", myagent.StateRestoredMeta{}},
	myagent.SystemConnected:       {myagent.ConnectedContent{}, myagent.ConnectedMeta{}},
	myagent.SystemHeartbeat:       {myagent.HeartbeatContent{}, myagent.HeartbeatMeta{}},
	myagent.SystemNotice:          {myagent.NoticeContent{}, myagent.NoticeMeta{}},
	myagent.SystemError:           {"", myagent.SystemErrorMeta{}},
	myagent.ErrorValidation:       {"", myagent.ValidationMeta{}},
	myagent.ErrorTimeout:          {"", myagent.TimeoutErrorMeta{}},
	myagent.ErrorRetryAttempt:     {nil, myagent.RetryMeta{}},
	myagent.ErrorExecution:        {"", myagent.ExecutionErrorMeta{}},
	myagent.ErrorRecoveryFailed:   {"", myagent.RecoveryFailedMeta{}},
	myagent.ErrorRateLimited:      {"", myagent.RateLimitedMeta{}},
	myagent.AggregateStart:        {nil, myagent.AggregateStartMeta{}},
	myagent.AggregateCompleted:    {myagent.AggregateContent{}, myagent.AggregateCompletedMeta{}},
	myagent.PipelineCompleted:     {nil, myagent.PipelineMeta{}},
}

// myagentUnsent are members of the original's examples that this version never sends, and why.
// The schemas have them all the same, so that the examples fit.
var myagentUnsent = map[string]string{
	"plan.start metadata.temperature":                  "none is asked for: it is the provider's own",
	"solver.completed content.result.artifacts":        "agents of this version give texts only",
	"solver.completed metadata.quality_score":          "nothing computes one",
	"agent.tool_result metadata.result.items":          "the result is the tool's text, in output",
	"agent.tool_result metadata.result.count":          "the result is the tool's text, in output",
	"agent.partial_answer metadata.completion_percent": "how long an answer will be is not known before its end",
	"agent.partial_answer metadata.model":              "it is on the agent.thinking that precedes",
	"agent.partial_answer metadata.tokens_so_far":      "providers count at the end: see the notice with action usage",
	"error.timeout metadata.retry_after_ms":            "it is on the error.retry_attempt that follows",
}

// myagentShown are the events on which the original's server has a show_content and its
// description has none, and that of a retry, which has no other text.
var myagentShown = map[string]bool{myagent.ErrorValidation: true, myagent.ErrorTimeout: true, myagent.ErrorRetryAttempt: true}

// myagentBundle returns the bundle of the MyAgent session protocol. An event that goes both
// ways has a second definition, <event>.echo, for what the server sends.
func myagentBundle(c *comments) ([]byte, error) {
	d, shown := newDefinitions(c), newExamples(myagentUnsent)
	shown.skip = reflect.TypeFor[myagent.Task]()
	d.closed, d.raw = true, node{"type": "object"}
	d.value = func(outer reflect.Type, f reflect.StructField) node {
		if name, _ := jsonName(f); outer.Name()+"."+name == "ValidationMeta.provided_value" || outer.Name()+"."+name == "Task.context" {
			return node{}
		}
		return nil
	}
	d.finish = func(t reflect.Type, s node, own *members) {
		if t == reflect.TypeFor[myagent.Task]() { // It may have members of the client's own.
			s["required"] = []string{"id", "title"}
			delete(s, "additionalProperties")
			return
		}
		shown.finish(t, s, own)
	}
	frames, err := myagentExamples(shown)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, kind := range myagent.Inbound {
		d.messages.set(kind, myagentInbox[kind])
	}
	for _, f := range frames {
		out = append(out, f.name)
		d.messages.set(f.name, d.myagentFrame(f, shown))
	}
	d.messages.set("in", anyOf("From the client.", myagent.Inbound))
	d.messages.set("out", anyOf("To the client.", out))
	maps.Copy(d.types, myagentParts)
	d.types["Frame"] = node{
		"description": "A message of the server.", "type": "object",
		"properties": node{
			"event":     node{"type": "string"},
			"timestamp": stamp(),
			"seq": node{
				"description": "Position of the event in its session: 1, 2, 3, ... Absent on frames that were made for one connection. Addition.",
				"type":        "integer", "minimum": 1,
			},
			"event_id":   node{"type": "string", "description": "Opaque; a client resumes with it. On the frames that have a seq. Addition."},
			"session_id": node{"type": "string", "description": "Absent where the frame is about the connection."},
			"metadata":   node{"type": "object"},
		},
		"required": []string{"event", "metadata", "timestamp"},
	}
	return d.encode("myagent", "Events of the MyAgent session protocol", []string{"in", "out"})
}

// myagentEvent is an event to the client with its example, which may be missing.
type myagentEvent struct {
	kind, name string
	shape
	example node
}

// myagentExamples returns all events to the client, and reads their examples.
func myagentExamples(shown *examples) ([]myagentEvent, error) {
	var all []myagentEvent
	for _, kind := range myagent.Outbound {
		f := myagentEvent{kind: kind, name: kind}
		if slices.Contains(myagent.Inbound, kind) {
			f.name += echo
		}
		var ok bool
		if f.shape, ok = myagentOutbox[f.name]; !ok {
			return nil, fmt.Errorf("schema of %s: it has no Go types", f.name)
		}
		var err error
		if f.example, err = readExample(myagent.Examples, "examples/"+f.name+".json"); err != nil {
			return nil, err
		}
		shown.message = kind
		if err := shown.read(reflect.TypeOf(f.metadata), "metadata", f.example["metadata"]); err != nil {
			return nil, err
		}
		if f.content != nil {
			if err := shown.read(reflect.TypeOf(f.content), "content", f.example["content"]); err != nil {
				return nil, err
			}
		}
		all = append(all, f)
	}
	return all, shown.unread()
}

// myagentFrame returns the schema of an event that the server sends.
func (d *definitions) myagentFrame(f myagentEvent, shown *examples) node {
	value := func(v any, example any) node {
		t := reflect.TypeOf(v)
		return with(d.of(t), shown.stricter(t, example))
	}
	props := node{"event": node{"const": f.kind}, "metadata": value(f.metadata, f.example["metadata"])}
	s := shut(node{"allOf": []node{to("Frame")}, "properties": props})
	var required []string
	if f.content != nil {
		required, props["content"] = append(required, "content"), value(f.content, f.example["content"])
	}
	if _, ok := f.example["step_id"]; ok {
		required, props["step_id"] = append(required, "step_id"), node{"type": "string"}
	}
	const about = "For people, in the session's language."
	switch _, ok := f.example["show_content"]; {
	case myagentShown[f.kind]:
		props["show_content"] = node{"type": "string", "description": about + " Addition."}
	case ok || f.example == nil:
		props["show_content"] = node{"type": "string", "description": about}
	}
	if required != nil {
		s["required"] = required
	}
	return s
}
