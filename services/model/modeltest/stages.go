package modeltest

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model"
	"github.com/waggle-dev/waggle/services/model/prompt"
	"github.com/waggle-dev/waggle/services/model/scripted"
	"github.com/waggle-dev/waggle/services/plan"
)

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

// form checks that the model requests the form from the provider, and that the provider's JSON is the text.
func (h HTTP) form(t *testing.T) {
	const said = `{"tasks":[{"id":"é","title":"\n"}]}`
	s := h.start(t, scripted.Always(scripted.Stream(scripted.Text(said[:5], said[5:]), scripted.Usage(1, 2))), model.Env{})
	req := Ask("hello")
	req.Tools, req.Schema = nil, prompt.PlanSchema()
	r := generate(t, s.m, req)
	require.Equal(t, said, r.Text)
	require.Empty(t, r.ToolCalls)
	require.Equal(t, model.StopEnd, r.StopReason)
	got := s.srv.Exchanges()[0].Prompt.Schema
	require.NotNil(t, got)
	require.Equal(t, req.Schema.Name, got.Name)
	require.JSONEq(t, string(req.Schema.JSON), string(got.JSON))
}
