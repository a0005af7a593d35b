package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAGUIStopsATask of a plan, and the rest goes on.
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
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
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
