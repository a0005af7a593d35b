package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// askingBase is the base of the agent that asks.
const askingBase = "/agents/Painter"

// painter connects an agent that asks before it does anything. Its answer is what it was told.
func painter(t *testing.T, p place, q swarm.Question) {
	t.Helper()
	sdkAgent(t, p.sdk(), "Painter", func(ctx context.Context, task *swarm.Task) (any, error) {
		answer, err := task.Ask(ctx, q)
		if err != nil {
			return fmt.Sprint("nothing: ", strings.Contains(err.Error(), "INPUT_EXPIRED")), nil
		}
		return "painted " + string(answer), nil
	})
	process.Eventually(t, "the agent is known", func() bool {
		return strings.Contains(over(t, http.MethodGet, p.url("/api/v1/agents"), p.key), "painter-1")
	})
}

// resumes adds the answer to a question to the body of a request.
func resumes(id string, payload any) func(map[string]any) {
	return func(in map[string]any) {
		in["resume"] = []any{object{"interruptId": id, "status": "resolved", "payload": payload}}
	}
}

// inList returns the open questions of a list.
func inList(t *testing.T, p place, query string, want int) (out []api.Question) {
	t.Helper()
	process.Eventually(t, "the questions are listed", func() bool {
		var list api.QuestionList
		text := over(t, http.MethodGet, p.url("/api/v1/questions?"+query), p.key)
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(text, "200 ")), &list), text)
		out = list.Questions
		return len(out) == want
	})
	return out
}

// TestAGUIAsksForAnAgent: the question of an agent of the swarm ends the stretch, and the answer to it goes to the agent, whose
// result is that of the run.
func TestAGUIAsksForAnAgent(t *testing.T) {
	t.Parallel()
	p, _ := apart.forTenant(t, scripted.Always(say("the model speaks")))
	painter(t, p, swarm.Question{Message: "Which colour?", Options: []string{"red", "green"}, Timeout: time.Hour})
	c, other := p.agui(), p.at(p.other).agui()
	thread := newRun()
	open := interrupts(t, c.runAt(askingBase, thread, newRun(), "paint it", nil))
	require.Len(t, open, 1)
	q := open[0]
	require.Equal(t, []string{wire.ReasonInputRequired, "Which colour?"}, []string{q.Reason, q.Message})
	require.JSONEq(t, `{"type":"object","properties":{"answer":{"enum":["red","green"]}},"required":["answer"],"additionalProperties":false}`, string(q.ResponseSchema))
	about, err := json.Marshal(q.Metadata.Waggle)
	require.NoError(t, err)
	require.JSONEq(t, `{"options":["red","green"],"message_type":"input_request"}`, string(about))
	ends, err := time.Parse(time.RFC3339Nano, q.ExpiresAt)
	require.NoError(t, err)
	require.True(t, ends.After(time.Now()) && ends.Before(time.Now().Add(time.Hour)), ends)

	one := inList(t, p.at(p.other), "", 1)[0]
	require.Equal(t, []string{"session", "agent", "Painter", `"Which colour?"`, q.ID}, []string{one.Kind, one.Scope, one.Asker, string(one.Message), one.InputID})
	require.Len(t, inList(t, p.at(p.other), "kind=task", 1), 1, "the log of the task has it, too")

	status, text := c.text(http.MethodPost, askingBase, aguiInput(thread, newRun(), "and more", nil))
	require.Equal(t, http.StatusConflict, status, text)
	require.Contains(t, text, "INPUT_REQUIRED")
	for payload, field := range map[any]string{"blue": "resume[0].payload", nil: "resume[0].payload"} {
		status, text = c.text(http.MethodPost, askingBase, aguiInput(thread, newRun(), "", resumes(q.ID, payload)))
		require.Equal(t, http.StatusUnprocessableEntity, status, text)
		require.Contains(t, text, `"`+field+`"`)
	}
	status, text = c.text(http.MethodPost, "", aguiInput(thread, newRun(), "", resumes(q.ID, object{"answer": 7})))
	require.Equal(t, http.StatusUnprocessableEntity, status, text)
	require.Contains(t, text, `"resume[0].payload.answer"`)

	next := newRun()
	frames := other.runAt(askingBase, thread, next, "", resumes(q.ID, object{"answer": "green"}))
	require.Equal(t, wire.RunStarted, frames[0].Type)
	require.Equal(t, next, frames[0].RunID, "the answer names the next stretch")
	require.Equal(t, `painted "green"`, speech(frames))
	require.Equal(t, wire.OutcomeSuccess, frames[len(frames)-1].Outcome.Type)
	again := other.runAt(askingBase, thread, next, "", resumes(q.ID, object{"answer": "red"}))
	require.Equal(t, said(frames), said(again), "a repeat shows the run")
	require.NotContains(t, strings.Join(datas(again), ""), "answer_refused")
	inList(t, p, "", 0)
	inList(t, p, "kind=task", 0)
}
