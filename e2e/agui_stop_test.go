package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAGUIStopsATask of a plan, and the rest continues.
func TestAGUIStopsATask(t *testing.T) {
	t.Parallel()
	p, cast := apart.forTenant(t, scripted.Stages{
		Plan:      scripted.Always(scripted.Plan(tasks("a", "endless")...)),
		Tasks:     map[string]scripted.Script{"endless": scripted.Always(scripted.Stream(scripted.Text("I begin. "), scripted.Hang()))},
		Solve:     scripted.Always(say("done")),
		Aggregate: scripted.Always(say("all is done")),
	}.Script())
	c := p.agui()
	thread := newRun()
	ctx, cancel := context.WithTimeout(t.Context(), process.MaxWait)
	defer cancel()
	resp := c.request(ctx, http.MethodPost, "", aguiInput(thread, newRun(), "do it "+cast.cue, func(in map[string]any) {
		in["forwardedProps"] = map[string]any{"waggle": map[string]any{"mode": "plan", "confirmPlan": false}}
	}))
	defer func() { _ = resp.Body.Close() }()
	once := false
	frames := c.stream(resp, func(f aguiFrame) bool {
		if f.Type == wire.TextMessageContent && strings.Contains(f.Delta, "I begin") && !once {
			once = true
			for task, want := range map[string]int{"none": http.StatusNotFound, "endless": http.StatusAccepted} {
				status, text := c.text(http.MethodPost, "/threads/"+thread+"/cancel", fmt.Appendf(nil, `{"taskId":%q}`, task))
				require.Equal(t, want, status, text)
			}
		}
		return true
	})
	require.True(t, once)
	require.Equal(t, wire.OutcomeSuccess, frames[len(frames)-1].Outcome.Type)
	require.True(t, slices.ContainsFunc(frames, func(f aguiFrame) bool {
		return f.Type == wire.SubagentError && strings.Contains(f.data, "CANCELLED")
	}))
}

// TestAStoppedAnswerIsKept: the text that people have read before they stop it stays, in AG-UI, in ORBIT, in the log and for the model.
func TestAStoppedAnswerIsKept(t *testing.T) {
	t.Parallel()
	p, cast := apart.forTenant(t, func(x *scripted.Exchange) scripted.Reply {
		for _, m := range x.Prompt.Messages {
			if strings.Contains(m.Content, "I begin. ") {
				return say("I was at it")
			}
		}
		return scripted.Stream(scripted.Text("I begin. "), scripted.Hang())
	})
	c, thread := p.agui(), newRun()
	ctx, cancel := context.WithTimeout(t.Context(), process.MaxWait)
	defer cancel()
	resp := c.request(ctx, http.MethodPost, "", aguiInput(thread, newRun(), "do it "+cast.cue, nil))
	defer func() { _ = resp.Body.Close() }()
	frames := c.stream(resp, func(f aguiFrame) bool {
		if f.Type == wire.TextMessageContent {
			status, text := c.text(http.MethodPost, "/threads/"+thread+"/cancel", nil)
			require.Equal(t, http.StatusAccepted, status, text)
		}
		return true
	})
	require.Equal(t, wire.OutcomeCancelled, frames[len(frames)-1].Outcome.Type)
	require.False(t, slices.ContainsFunc(frames, func(f aguiFrame) bool { return f.Type == wire.MessagesSnapshot }), "nothing is taken away")
	require.True(t, slices.ContainsFunc(frames, func(f aguiFrame) bool {
		return f.Type == wire.TextMessageEnd && strings.Contains(f.data, `"stopReason":"stopped"`)
	}))
	status, text := c.text(http.MethodGet, "/threads/"+thread+"/messages", nil)
	require.Equal(t, http.StatusOK, status, text)
	var page struct{ Messages []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(text), &page))
	stopped := map[string]any{"waggle": map[string]any{"stopReason": "stopped"}}
	require.True(t, slices.ContainsFunc(page.Messages, func(m map[string]any) bool {
		return m["content"] == "I begin. " && reflect.DeepEqual(m["metadata"], stopped)
	}), text)
	said := inLog[event.MessageCompletedData](t, p, thread)
	require.Len(t, said, 1)
	require.Equal(t, event.StopStopped, said[0].StopReason)

	orbit := p.at(p.other).orbit("?after=0&deltas=true&session=" + thread)
	require.Contains(t, orbit.Until("agent_delta").Raw, "I begin. ")
	require.Contains(t, orbit.Until("error", "agent_delta_discarded").Raw, "RUN_CANCELLED")
	require.Contains(t, speech(c.run(thread, newRun(), "go on "+cast.cue, nil)), "I was at it")
}
