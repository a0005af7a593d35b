package agui_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/agui"
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
	all := strings.Join(framesOf(agui.V1, log), "\n")
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

// TestStepsWaitForTheQuestionsOfTheirAgents: what else of the plan runs goes on.
func TestStepsWaitForTheQuestionsOfTheirAgents(t *testing.T) {
	events := written(t)["agents that ask"]
	all := framesOf(agui.V1, events)
	both := strings.Join(all, "\n")
	require.Contains(t, both, `"subagentRunId":"ja","outcome":{"type":"suspended","interruptIds":["ask_1"]}`)
	require.Contains(t, both, `"subagentRunId":"jb","outcome":{"type":"suspended","interruptIds":["ask_2"]}`)
	require.Equal(t, 4, strings.Count(both, `"outcome":{"type":"interrupt"`), "the plan; both; both again; then the one whose question is open")
}
