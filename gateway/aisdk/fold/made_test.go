package fold_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var log = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}

// logOf returns a log of the data.
func logOf(t testing.TB, data ...event.Data) (out []event.Event) {
	t.Helper()
	for i, d := range data {
		e, err := event.New(log, "", "test", time.Unix(1_700_000_000, 0), d)
		require.NoError(t, err)
		e.Sequence = uint64(i + 1)
		out = append(out, e)
	}
	return out
}

// begun is the beginning of a run r1.
func begun(mode string, tools ...event.ClientTool) []event.Data {
	spec := event.RunSpec{Mode: mode, ClientTools: tools, Extra: json.RawMessage(`{"aisdk":{"message_id":"u1"}}`)}
	return []event.Data{
		event.SessionCreatedData{},
		event.MessageReceivedData{MessageID: "m1", RunID: "r1", Content: "paint", RunSpec: spec},
		event.RunStartedData{RunID: "r1", MessageID: "m1", Content: "paint", Mode: mode},
	}
}

func solving(step string) event.Part {
	return event.Part{JobID: "j" + step, StepID: step, Stage: event.StageSolving}
}

// made are logs of what no transcript has.
func made(t testing.TB) map[string][]event.Event {
	t.Helper()
	delta := func(text string) event.Data {
		return event.MessageDeltaData{MessageID: "t1", RunID: "r1", Attempt: 1, Text: text}
	}
	over := event.RunCompletedData{RunID: "r1", MessageID: "t2", Content: "done"}
	ask := event.InputRequestedData{InputID: "ask_1", RunID: "r1", Scope: event.ScopeAgent, Summary: "Which?", AgentQuestion: event.AgentQuestion{AgentName: "ann", Options: json.RawMessage(`["red",1]`)}}
	steps := []event.Step{{ID: "a", Title: "A"}, {ID: "b", Title: "B"}, {ID: "c", Title: "C", Dependencies: []string{"a"}}}
	call := func(step string) []event.Data {
		q := event.InputRequestedData{InputID: "q" + step, RunID: "r1", Scope: event.ScopeTool, CallID: "c" + step, Tool: "write", Arguments: json.RawMessage(`{}`), Part: solving(step)}
		return []event.Data{
			event.StepStartedData{RunID: "r1", Step: event.Step{ID: step, Title: step}, Part: solving(step)},
			event.MessageDeltaData{MessageID: "t" + step, RunID: "r1", Text: "I write. ", Part: solving(step)},
			event.MessageCompletedData{MessageID: "t" + step, RunID: "r1", Content: "I write. ", Part: solving(step), ToolCalls: []event.ToolCall{{ID: "c" + step, Name: "write", Arguments: json.RawMessage(`{}`)}}},
			q,
			event.JobSuspendedData{RunID: "r1", Inputs: []string{q.InputID}, Part: solving(step)},
		}
	}
	answered := func(step, decision string) event.Data {
		return event.InputAnsweredData{InputID: "q" + step, RunID: "r1", Decision: decision, CallID: "c" + step}
	}
	join := func(parts ...[]event.Data) (out []event.Data) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	paint := event.ClientTool{Name: "paint"}
	painting := event.InputRequestedData{InputID: "q1", RunID: "r1", Scope: event.ScopeClientTool, CallID: "c1", Tool: "paint", Arguments: json.RawMessage(`{"color":"red"}`)}
	return map[string][]event.Event{
		"a discarded text": logOf(t, join(begun(event.ModeChat), []event.Data{
			event.ReasoningDeltaData{MessageID: "t1", RunID: "r1", Text: "I think. "},
			delta("half "),
			event.MessageDiscardedData{MessageID: "t1", RunID: "r1"},
			event.RequestFailedData{RunID: "r1", Message: "Broken.", Try: 1, MaxTries: 3},
			event.MessageDeltaData{MessageID: "t2", RunID: "r1", Text: "whole"},
			event.MessageCompletedData{MessageID: "t2", RunID: "r1", Content: "whole"},
			event.RunCompletedData{RunID: "r1", MessageID: "t2", Content: "whole"},
		})...),
		"a tool of the page": logOf(t, join(begun(event.ModeChat, paint), []event.Data{
			painting,
			event.JobSuspendedData{RunID: "r1", Inputs: []string{"q1"}},
			event.InputAnsweredData{InputID: "q1", RunID: "r1", Decision: event.DecisionApprove, Scope: event.ScopeClientTool, CallID: "c1", Result: `{"ok":true}`},
			over,
		})...),
		"an agent that asks": logOf(t, join(begun(event.ModeChat), []event.Data{
			ask, event.InputAnsweredData{InputID: "ask_1", RunID: "r1", Decision: event.DecisionAnswer, Scope: event.ScopeAgent, Message: json.RawMessage(`"red"`)}, over,
		})...),
		"a question that expires": logOf(t, join(begun(event.ModeChat), []event.Data{
			ask, event.InputExpiredData{InputID: "ask_1", RunID: "r1", Scope: event.ScopeAgent}, over,
		})...),
		"two approvals at once": logOf(t, join(begun(event.ModeSteps), call("a"), call("b"), []event.Data{
			answered("a", event.DecisionReject), answered("b", event.DecisionApprove),
			event.JobStartedData{RunID: "r1", Attempt: 2, Part: solving("b")},
			event.ToolCompletedData{CallID: "cb", RunID: "r1", Result: "ok", Part: solving("b")},
			event.StepFailedData{RunID: "r1", Message: "refused", Part: solving("a")},
			event.StepCompletedData{RunID: "r1", Output: "B", Part: solving("b")},
			over,
		})...),
		"a plan that is changed": logOf(t, join(begun(event.ModePlan), []event.Data{
			event.PlanStartedData{RunID: "r1", PlanID: "p"},
			event.PlanCompletedData{RunID: "r1", PlanID: "p", Steps: steps},
			event.InputRequestedData{InputID: "q1", RunID: "r1", Scope: event.ScopePlan, PlanID: "p", Steps: steps},
			event.InputAnsweredData{InputID: "q1", RunID: "r1", Decision: event.DecisionModify, Steps: steps[:2]},
		}, call("a"), []event.Data{event.RunCancelledData{RunID: "r1"}})...),
		"stopped in the middle": logOf(t, join(begun(event.ModeChat), []event.Data{delta("half "), event.RunCancelledData{RunID: "r1"}})...),
		"cancelled in the queue": logOf(t, join(begun(event.ModeChat), []event.Data{
			event.MessageReceivedData{MessageID: "m2", RunID: "r2", Content: "and", Queued: 1}, event.RunCancelledData{RunID: "r2"}, over,
		})...),
		"files and notes": logOf(t, join(begun(event.ModeChat), []event.Data{
			event.ToolCalledData{CallID: "c1", RunID: "r1", Tool: "shoot", Arguments: json.RawMessage(`{}`)},
			event.ToolCompletedData{CallID: "c1", RunID: "r1", Result: "an image", Files: []event.File{{Kind: event.FileImage, MediaType: "image/png", Object: event.ObjectRef{Log: "session.s1", Digest: "0a"}}}},
			event.TodosUpdatedData{RunID: "r1", Todos: []event.Todo{{TodoID: "1", Description: "first", Status: event.TodoPending}}},
			event.ArtifactPersistedData{Artifact: event.Artifact{ArtifactID: "f1", RunID: "r1", Path: "a.txt", Type: "file"}},
			event.NoticeData{Level: "warning", Code: "X", Message: "x"},
			event.RunFailedData{RunID: "r1", Code: "MODEL_FAILED", Message: "no", Answer: "Half."},
		})...),
	}
}
