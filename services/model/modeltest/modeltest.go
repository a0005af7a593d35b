// Package modeltest is the conformance suite of model.Model. Every implementation runs it; those behind HTTP run
// ExerciseHTTP, which adds the failures of a network.
package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/prompt"
	"github.com/waggle-dev/waggle/services/plan"
)

// bound limits a call that has to end at once. It is generous for busy machines; only a failing test waits for it.
const bound = 90 * time.Second

// Question needs two tools at once: a list of files and the text of notes.md.
const Question = "which files are in the workspace, and what does notes.md say?"

// Suite is a model under test. It must answer greetings with text, Question with calls of both tools in one step and then
// from both results, and "what does notes.md say?" with a call of read_file and then from its result. It plans Request as
// two steps, solves a step as it answers the step's title, and aggregates with all results.
type Suite struct {
	Open  func(t *testing.T) model.Model // returns a new model; the suite closes it
	Usage bool                           // the model reports usage
}

// Tools returns the tools that the suite offers, with the names and schemas of Waggle's own.
func Tools() []model.ToolSpec {
	return []model.ToolSpec{
		{Name: "workspace_list_files", Description: "Lists files.", InputSchema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"}}}`)},
		{Name: "workspace_read_file", Description: "Reads a file.", InputSchema: json.RawMessage(
			`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
	}
}

// Exercise checks all promises of model.Model that need no failing provider.
func Exercise(t *testing.T, s Suite) {
	t.Helper()
	cases := []struct {
		name string
		run  func(*testing.T, Suite, model.Model)
	}{
		{"text", text},
		{"tool round trip", roundTrip},
		{"parallel calls", parallel},
		{"failed tool", failedTool},
		{"unicode", unicode},
		{"long answer", long},
		{"cancelled by the reader", cancelled},
		{"deadline has passed", deadline},
		{"reader fails", readerFails},
		{"many at once", concurrent},
		{"a plan", plans},
		{"a task", solves},
		{"an answer made of results", aggregates},
		{"another model", another},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, s, open(t, s.Open)) })
	}
}

func open(t *testing.T, f func(*testing.T) model.Model) model.Model {
	t.Helper()
	m := f(t)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	require.NotEmpty(t, m.Name())
	return m
}

// Ask returns a request with one message of the user and the suite's tools.
func Ask(text string) model.Request {
	var n atomic.Int64
	return model.Request{
		System:   "You are a test.",
		Messages: []model.Message{{Role: model.RoleUser, Content: text}},
		Tools:    Tools(),
		NewID:    func() string { return fmt.Sprintf("new-%d", n.Add(1)) },
		Now:      time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC),
	}
}

// Generate runs m and checks the properties of every answer.
func Generate(ctx context.Context, t *testing.T, m model.Model, req model.Request) (model.Reply, error) {
	t.Helper()
	var got, thought strings.Builder
	take := func(to *strings.Builder) func(string) error {
		return func(s string) error {
			require.NotEmpty(t, s, "an empty piece")
			to.WriteString(s)
			return nil
		}
	}
	r, err := m.Generate(ctx, req, model.Listener{Text: take(&got), Reasoning: take(&thought)})
	if err != nil {
		require.Empty(t, r)
		return r, err
	}
	require.Equal(t, got.String(), r.Text, "the pieces concatenate to the text")
	require.Equal(t, thought.String(), r.Reasoning, "the pieces concatenate to the reasoning")
	require.True(t, utf8.ValidString(r.Text) && utf8.ValidString(r.Reasoning))
	require.False(t, strings.TrimSpace(r.Text) == "" && len(r.ToolCalls) == 0, "an empty answer is a failure")
	require.NotEmpty(t, r.Model)
	require.Contains(t, []string{model.StopEnd, model.StopToolCalls, model.StopLength, model.StopFiltered, model.StopRefused, model.StopOther}, r.StopReason)
	ids := map[string]bool{}
	for _, msg := range req.Messages {
		for _, c := range msg.ToolCalls {
			ids[c.ID] = true
		}
	}
	for _, c := range r.ToolCalls {
		require.NotEmpty(t, c.ID)
		require.NotEmpty(t, c.Name)
		require.False(t, ids[c.ID], "id %s is used twice", c.ID)
		ids[c.ID] = true
		require.True(t, json.Valid(c.Arguments), "arguments %s", c.Arguments)
	}
	return r, nil
}

func generate(t *testing.T, m model.Model, req model.Request) model.Reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	r, err := Generate(ctx, t, m, req)
	require.NoError(t, err)
	return r
}

// Answer returns req continued by the reply and a result for each of its calls.
func Answer(req model.Request, r model.Reply, result func(event.ToolCall) (text string, failed bool)) model.Request {
	req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)],
		model.Message{Role: model.RoleAssistant, Content: r.Text, ToolCalls: r.ToolCalls, Reasoning: r.Reasoning, PassBack: r.PassBack})
	for _, c := range r.ToolCalls {
		text, failed := result(c)
		req.Messages = append(req.Messages, model.Message{Role: model.RoleTool, ToolCallID: c.ID, Content: text, IsError: failed})
	}
	return req
}

func text(t *testing.T, s Suite, m model.Model) {
	r := generate(t, m, Ask("hello"))
	require.NotEmpty(t, r.Text)
	require.Empty(t, r.ToolCalls)
	require.Equal(t, model.StopEnd, r.StopReason)
	require.Equal(t, s.Usage, r.Usage.Known)
	if s.Usage {
		require.Positive(t, r.Usage.InputTokens)
		require.Positive(t, r.Usage.OutputTokens)
	}
	req := Ask("hello")
	req.Tools = nil
	require.NotEmpty(t, generate(t, m, req).Text, "without tools")
}

// another checks that a request may ask for another model of the provider, by its name or as a whole specification.
func another(t *testing.T, _ Suite, m model.Model) {
	prefix, opened, _ := strings.Cut(m.Name(), ":")
	req := Ask("hello")
	require.Equal(t, m.Name(), model.Asked(m, ""))
	for _, other := range []string{"other:8b", prefix + ":other:8b"} {
		require.Equal(t, prefix+":other:8b", model.Asked(m, other))
		req.Model = other
		require.Equal(t, "other:8b", generate(t, m, req).Model)
	}
	req.Model = ""
	require.Contains(t, []string{opened, prefix}, generate(t, m, req).Model, "only that request")
}

func readFile(t *testing.T, m model.Model, content string, failed bool) model.Reply {
	t.Helper()
	req := Ask("what does notes.md say?")
	r := generate(t, m, req)
	require.Equal(t, model.StopToolCalls, r.StopReason)
	require.Len(t, r.ToolCalls, 1)
	require.Equal(t, "workspace_read_file", r.ToolCalls[0].Name)
	require.JSONEq(t, `{"path":"notes.md"}`, string(r.ToolCalls[0].Arguments))
	r = generate(t, m, Answer(req, r, func(event.ToolCall) (string, bool) { return content, failed }))
	require.Equal(t, model.StopEnd, r.StopReason)
	require.Empty(t, r.ToolCalls)
	return r
}

func roundTrip(t *testing.T, _ Suite, m model.Model) {
	require.Contains(t, readFile(t, m, "Buy milk.", false).Text, "Buy milk.")
}

func parallel(t *testing.T, _ Suite, m model.Model) {
	req := Ask(Question)
	r := generate(t, m, req)
	require.Len(t, r.ToolCalls, 2)
	results := map[string]string{"workspace_list_files": "notes.md\ntodo.txt", "workspace_read_file": "Remember the bees."}
	second := Answer(req, r, func(c event.ToolCall) (string, bool) { return results[c.Name], false })
	r = generate(t, m, second)
	require.Empty(t, r.ToolCalls)
	require.Contains(t, r.Text, "todo.txt")
	require.Contains(t, r.Text, "Remember the bees.")

	third := Answer(second, r, nil)
	third.Messages = append(third.Messages, model.Message{Role: model.RoleUser, Content: "what does todo.txt say?"})
	r = generate(t, m, third) // ids stay unique in a longer conversation
	require.Len(t, r.ToolCalls, 1)
	require.JSONEq(t, `{"path":"todo.txt"}`, string(r.ToolCalls[0].Arguments))
}

func failedTool(t *testing.T, _ Suite, m model.Model) {
	require.Contains(t, readFile(t, m, "no such file: notes.md", true).Text, "no such file")
}

func unicode(t *testing.T, _ Suite, m model.Model) {
	const s = "Grüße, 世界! 👩‍👩‍👧‍👦 e\u0301 \u202Eשלום\u202C <b>&\"\\ \u2028 𝄞"
	require.Contains(t, readFile(t, m, s, false).Text, s)
}

func long(t *testing.T, _ Suite, m model.Model) {
	s := strings.TrimSpace(strings.Repeat("All work and no play makes Jack a dull boy. ", 2_000))
	require.Contains(t, readFile(t, m, s, false).Text, s)
}

func cancelled(t *testing.T, _ Suite, m model.Model) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pieces := 0
	r, err := m.Generate(ctx, Ask("hello"), model.Text(func(string) error {
		pieces++
		cancel()
		return ctx.Err()
	}))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, r)
	require.Equal(t, 1, pieces)
}

func deadline(t *testing.T, _ Suite, m model.Model) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	_, err := Generate(ctx, t, m, Ask("hello"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, fault.New(fault.ModelTimeout))
}

func readerFails(t *testing.T, _ Suite, m model.Model) {
	fence := errors.New("another attempt has the run")
	pieces := 0
	_, err := m.Generate(t.Context(), Ask("hello"), model.Text(func(string) error { pieces++; return fence }))
	require.Same(t, fence, err) //nolint:testifylint // unchanged is the promise.
	require.Equal(t, 1, pieces)
}

func concurrent(t *testing.T, _ Suite, m model.Model) {
	const n = 16
	texts := make(chan string, n)
	for range n {
		go func() {
			var b strings.Builder
			_, err := m.Generate(t.Context(), Ask("hello"), model.Text(func(s string) error { b.WriteString(s); return nil }))
			if err != nil {
				b.WriteString(err.Error())
			}
			texts <- b.String()
		}()
	}
	first := <-texts
	require.NotEmpty(t, first)
	for range n - 1 {
		require.Equal(t, first, <-texts)
	}
}

// Request has two parts, the second of which has to wait for the first.
const Request = "list the files; then read notes.md"

// Stage returns a request of a stage of a pipeline run.
func Stage(t *testing.T, stage string, d prompt.Data) model.Request {
	t.Helper()
	text, err := prompt.Write(d)
	require.NoError(t, err)
	req := Ask(text)
	req.System, req.Tools = prompt.System(stage, ""), nil
	switch stage {
	case event.StagePlanning:
		req.Schema = prompt.PlanSchema()
	case event.StageSolving:
		req.Tools = Tools()
	}
	return req
}

// plans checks that Request becomes a valid plan.
func plans(t *testing.T, _ Suite, m model.Model) {
	r := generate(t, m, Stage(t, event.StagePlanning, prompt.Data{Question: Request}))
	require.Empty(t, r.ToolCalls)
	require.Equal(t, model.StopEnd, r.StopReason)
	require.True(t, json.Valid([]byte(r.Text)), "%s", r.Text)
	p, err := plan.Coerce([]byte(r.Text))
	require.NoError(t, err)
	require.Len(t, p.Tasks, 2)
	require.Equal(t, []string{p.Tasks[0].ID}, p.Tasks[1].Dependencies)
	require.NotEmpty(t, p.Summary)
}

// solves checks that the model solves a step as it answers a message.
func solves(t *testing.T, _ Suite, m model.Model) {
	req := Stage(t, event.StageSolving, prompt.Data{
		Question: Request, Task: &event.Step{ID: "b", Title: "read notes.md", Dependencies: []string{"a"}},
		Inputs: []prompt.Result{{ID: "a", Title: "list the files", Status: "completed", Output: "notes.md"}},
	})
	r := generate(t, m, req)
	require.Len(t, r.ToolCalls, 1)
	require.JSONEq(t, `{"path":"notes.md"}`, string(r.ToolCalls[0].Arguments))
	r = generate(t, m, Answer(req, r, func(event.ToolCall) (string, bool) { return "Buy milk.", false }))
	require.Empty(t, r.ToolCalls)
	require.Contains(t, r.Text, "Buy milk.")
}

// aggregates checks that the answer reports the result of every step.
func aggregates(t *testing.T, _ Suite, m model.Model) {
	r := generate(t, m, Stage(t, event.StageAggregation, prompt.Data{Question: Request, Results: []prompt.Result{
		{ID: "a", Title: "list the files", Status: "completed", Output: "There is notes.md."},
		{ID: "b", Title: "read notes.md", Status: "failed", Error: "It is locked."},
	}}))
	require.Empty(t, r.ToolCalls)
	require.Contains(t, r.Text, "There is notes.md.")
	require.Contains(t, r.Text, "It is locked.")
}
