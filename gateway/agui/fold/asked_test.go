package fold_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/dialect"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// asks is a question of an agent of the swarm.
func asks(id, options string, of event.Part) event.InputRequestedData {
	return event.InputRequestedData{
		InputID: id, RunID: "r1", Scope: event.ScopeAgent, Summary: "Which colour?", TimeoutSeconds: 60, Part: of,
		AgentQuestion: event.AgentQuestion{
			TaskID: "work_1", TaskSeq: 3, AgentName: "Painter", MessageType: "input_request", Message: json.RawMessage(`"Which colour?"`),
			Options: json.RawMessage(options), ExpiresAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		},
	}
}

// painting is a log of a run of an agent that asks.
func painting(options string) []event.Data {
	return []event.Data{
		event.SessionCreatedData{},
		event.MessageReceivedData{MessageID: "m1", RunID: "r1", Content: "paint", RunSpec: event.RunSpec{Mode: event.ModeChat}},
		event.RunStartedData{RunID: "r1", MessageID: "m1", Content: "paint", Mode: event.ModeChat},
		asks("ask_1", options, event.Part{}),
	}
}

// TestAnAgentsQuestionEndsTheStretch, and its answer begins the next one.
func TestAnAgentsQuestionEndsTheStretch(t *testing.T) {
	log := logOf(t, painting(`["red","green"]`)...)
	thread := folded(log)
	open, only := thread.Questions()
	require.True(t, only)
	require.Len(t, open, 1)
	q := open[0]
	require.Equal(t, []string{wire.ReasonInputRequired, "Which colour?", "2026-01-02T03:04:05.000Z"}, []string{q.Reason, q.Message, q.ExpiresAt})
	require.JSONEq(t, `{"type":"object","properties":{"answer":{"enum":["red","green"]}},"required":["answer"],"additionalProperties":false}`, string(q.ResponseSchema))
	all := strings.Join(framesOf(fold.V1, log), "\n")
	require.Contains(t, all, `"metadata":{"waggle":{"message_type":"input_request","options":["red","green"]}}`)
	require.Contains(t, all, `"outcome":{"type":"interrupt"`)

	thread = folded(logOf(t, append(painting(""), event.InputAnsweredData{InputID: "ask_1", RunID: "r1", CommandID: "x", Segment: "s2", Decision: event.DecisionAnswer, Scope: event.ScopeAgent})...))
	require.Equal(t, "s2", thread.Open(), "the agent goes on")
}

// TestAnswersToAgents are anything, or one of the options, alone or in an object.
func TestAnswersToAgents(t *testing.T) {
	body := func(payload string) string {
		return `{"resume":[{"interruptId":"ask_1","status":"resolved","payload":` + payload + `}]}`
	}
	for options, payloads := range map[string]map[string]string{
		``:                       {`null`: ""},
		`["red",{"a":1,"b":[]}]`: {`null`: "", `"blue"`: "", `{"answer":"blue"}`: ".answer", `{"answer":"red","why":1}`: "", `{"a":1}`: "", `true`: ""},
	} {
		thread := folded(logOf(t, painting(options)...))
		for payload, field := range payloads {
			_, err := thread.Means(request(t, body(payload)))
			var f *fault.Fault
			require.ErrorAs(t, err, &f, payload)
			require.Equal(t, fault.InvalidField, f.Code)
			require.Equal(t, "resume[0].payload"+field, f.Field, payload)
		}
	}
	for options, payloads := range map[string]map[string]string{
		``:                       {`"x"`: `"x"`, `{"answer":{"deep":[1]}}`: `{"deep":[1]}`, `{"approved":true}`: `{"approved":true}`, `false`: `false`},
		`{"own":"form"}`:         {`7`: `7`},
		`["red",{"a":1,"b":[]}]`: {`"red"`: `"red"`, `{"answer":{"b":[],"a":1}}`: `{"b":[],"a":1}`, ` {"a":1.0,"b":[]} `: `{"a":1.0,"b":[]}`},
	} {
		thread := folded(logOf(t, painting(options)...))
		for payload, want := range payloads {
			m, err := thread.Means(request(t, body(payload)))
			require.NoError(t, err, payload)
			require.Equal(t, dialect.Answer{InputID: "ask_1", Approved: true, Message: json.RawMessage(want), Segment: "run-2"}, m.Intents[0].Data, payload)
		}
	}
	m, err := folded(logOf(t, painting("")...)).Means(request(t, `{"resume":[{"interruptId":"ask_1","status":"cancelled"}]}`))
	require.NoError(t, err)
	require.Equal(t, dialect.Answer{InputID: "ask_1", Feedback: "abandoned", Segment: "run-2"}, m.Intents[0].Data)
}

// changing is a log of two calls that people are asked about at once: one is approved with other arguments, and the other rejected
// after that.
func changing() []event.Data {
	ask := func(call string) event.InputRequestedData {
		return event.InputRequestedData{
			InputID: "approve_" + call, RunID: "r1", Scope: event.ScopeTool, CallID: call, Tool: "pay", Arguments: json.RawMessage(`{"amount":50}`),
			Parameters: json.RawMessage(`{"type":"object","properties":{"amount":{"type":"integer"}}}`),
		}
	}
	shown := event.ToolCall{ID: "c1", Name: "pay", Arguments: json.RawMessage(`{"amount":50}`)}
	other := shown
	other.ID = "c2"
	return []event.Data{
		event.SessionCreatedData{},
		event.MessageReceivedData{MessageID: "m1", RunID: "r1", Content: "pay", RunSpec: event.RunSpec{Mode: event.ModeChat}},
		event.RunStartedData{RunID: "r1", MessageID: "m1", Content: "pay", Mode: event.ModeChat},
		event.MessageStartedData{MessageID: "a1", RunID: "r1", Attempt: 1},
		event.MessageCompletedData{MessageID: "a1", RunID: "r1", Attempt: 1, ToolCalls: []event.ToolCall{shown, other}},
		ask("c1"), ask("c2"),
		event.JobSuspendedData{RunID: "r1", Inputs: []string{"approve_c1", "approve_c2"}},
		event.InputAnsweredData{
			InputID: "approve_c1", RunID: "r1", CommandID: "x", Segment: "s2", Decision: event.DecisionModify, CallID: "c1", Tool: "pay",
			Arguments: json.RawMessage(`{"amount":5}`), By: "alice",
		},
		event.JobStartedData{RunID: "r1", Attempt: 2, Resumed: true},
		event.ToolCalledData{CallID: "c1", RunID: "r1", Attempt: 2, Tool: "pay", Arguments: json.RawMessage(`{"amount":5}`)},
		event.ToolCompletedData{CallID: "c1", RunID: "r1", Attempt: 2, Tool: "pay", Result: "paid 5"},
		event.InputAnsweredData{InputID: "approve_c2", RunID: "r1", CommandID: "y", Decision: event.DecisionReject, CallID: "c2", Tool: "pay"},
		event.RunCompletedData{RunID: "r1", Content: "done"},
	}
}

// TestACallThatAPersonChanges: the interrupt says that its arguments may be changed and how, viewers get all messages with the call
// as it runs, and history shows no other.
func TestACallThatAPersonChanges(t *testing.T) {
	all := changing()
	thread := folded(logOf(t, all[:8]...))
	open, _ := thread.Questions()
	require.Len(t, open, 2)
	require.JSONEq(t, `{"type":"object","properties":{"approved":{"type":"boolean"},"feedback":{"type":"string"},
		"editedArgs":{"type":"object","properties":{"amount":{"type":"integer"}}}},"required":["approved"],"additionalProperties":false}`, string(open[0].ResponseSchema))
	m, err := thread.Means(request(t, `{"resume":[
		{"interruptId":"approve_c1","status":"resolved","payload":{"approved":true,"editedArgs":{"amount":5}}},
		{"interruptId":"approve_c2","status":"resolved","payload":{"approved":true,"editedArgs":null}}]}`))
	require.NoError(t, err)
	shown := event.CallDigest("pay", json.RawMessage(`{"amount":50}`))
	require.Equal(t, dialect.Answer{InputID: "approve_c1", CallID: "c1", Digest: shown, Approved: true, Arguments: json.RawMessage(`{"amount":5}`), Segment: "run-2"}, m.Intents[0].Data)
	require.Empty(t, m.Intents[1].Data.(dialect.Answer).Arguments)

	frames := framesOf(fold.V1, logOf(t, all...))
	text := strings.Join(frames, "\n")
	require.Contains(t, text, `"editedArgs":{"amount":5}`)
	require.Equal(t, 2, strings.Count(text, `"delta":"{\"amount\":50}"`), "the calls as the model has made them")
	snapshot := ""
	for _, f := range frames {
		if strings.Contains(f, `"MESSAGES_SNAPSHOT"`) {
			snapshot = f
		}
	}
	require.Contains(t, snapshot, `"arguments":"{\"amount\":5}"`)
	require.Equal(t, 1, strings.Count(snapshot, `\"amount\":50}`), "that of the other call")
	require.Contains(t, string(folded(logOf(t, all...)).Snapshot()), `"arguments":"{\"amount\":5}"`)
}

// TestStepsWaitForTheQuestionsOfTheirAgents: what else of the plan runs continues.
func TestStepsWaitForTheQuestionsOfTheirAgents(t *testing.T) {
	events := written(t)["agents that ask"]
	all := framesOf(fold.V1, events)
	both := strings.Join(all, "\n")
	require.Contains(t, both, `"subagentRunId":"ja","outcome":{"type":"suspended","interruptIds":["ask_1"]}`)
	require.Contains(t, both, `"subagentRunId":"jb","outcome":{"type":"suspended","interruptIds":["ask_2"]}`)
	require.Equal(t, 4, strings.Count(both, `"outcome":{"type":"interrupt"`), "the plan; both; both again; then the one whose question is open")
}
