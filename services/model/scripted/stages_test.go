package scripted_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model/prompt"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// staged returns the body of a request in a stage.
func staged(t *testing.T, stage string, d prompt.Data) string {
	t.Helper()
	user, err := prompt.Write(d)
	require.NoError(t, err)
	raw, err := json.Marshal(map[string]any{"model": "x", "stream": true, "messages": []map[string]string{
		{"role": "system", "content": prompt.System(stage, "")}, {"role": "user", "content": user},
	}})
	require.NoError(t, err)
	return string(raw)
}

func TestStages(t *testing.T) {
	says := func(s string) scripted.Script { return scripted.Always(scripted.Stream(scripted.Text(s))) }
	srv, c := start(t, scripted.Stages{
		Plan:      scripted.InTurn(scripted.Stream(scripted.Text("NO PLAN")), scripted.Plan(event.Step{ID: "a", Title: "A"})),
		Tasks:     map[string]scripted.Script{"a": scripted.Always(scripted.Fail(http.StatusBadRequest, "bad", "TASK A"))},
		Solve:     says("ANY TASK"),
		Aggregate: says("ALL"),
	}.Script())
	send := func(body string) string {
		b, err := io.ReadAll(post(t.Context(), t, c, srv.OpenAIBaseURL()+"/chat/completions", body).body)
		require.NoError(t, err)
		return string(b)
	}
	task := func(id string) prompt.Data { return prompt.Data{Task: &event.Step{ID: id, Title: "T"}} }
	require.Contains(t, send(staged(t, event.StagePlanning, prompt.Data{Question: "q"})), "NO PLAN")
	for range 2 {
		require.Contains(t, send(staged(t, event.StagePlanning, prompt.Data{Question: "q"})), `\"A\"`)
	}
	require.Contains(t, send(staged(t, event.StageSolving, task("a"))), "TASK A")
	require.Contains(t, send(staged(t, event.StageSolving, task("b"))), "ANY TASK")
	require.Contains(t, send(staged(t, event.StageAggregation, prompt.Data{})), "ALL")
	require.Contains(t, send(ask), "hello", "a chat is left to Smart")

	x, err := srv.Find(t.Context(), func(x *scripted.Exchange) bool { return x.Task == "b" })
	require.NoError(t, err)
	require.Equal(t, 5, x.N)
	require.Equal(t, event.StageSolving, x.Stage)
	require.False(t, x.Ended().Before(x.Arrived))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = srv.Find(ctx, func(x *scripted.Exchange) bool { return x.Task == "c" })
	require.ErrorIs(t, err, context.Canceled)
}
