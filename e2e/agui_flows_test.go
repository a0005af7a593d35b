package e2e_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// follow reads a stream of a thread in the background. The channel has its frames, and is closed at its end.
func (c aguiClient) follow(ctx context.Context, path string) <-chan aguiFrame {
	c.t.Helper()
	resp := c.request(ctx, http.MethodGet, path, nil) //nolint:bodyclose // the goroutine closes it
	require.Equal(c.t, http.StatusOK, resp.StatusCode)
	out := make(chan aguiFrame, 10_000)
	go func() {
		defer close(out)
		defer func() { _ = resp.Body.Close() }()
		c.stream(resp, func(f aguiFrame) bool { out <- f; return true })
	}()
	return out
}

// until returns the frames up to the first that fits.
func until(t *testing.T, frames <-chan aguiFrame, fits func(aguiFrame) bool) (out []aguiFrame) {
	t.Helper()
	for f := range frames {
		if out = append(out, f); fits(f) {
			return out
		}
	}
	require.FailNow(t, "the stream ended before")
	return nil
}

func runEnds(run string) func(aguiFrame) bool {
	return func(f aguiFrame) bool { return f.Type == wire.RunFinished && (run == "" || f.RunID == run) }
}

// TestOneThreadInThreeProtocols: a thread of AG-UI is open in ORBIT and MyAgent, too. Each sees all of it, and its plan is
// confirmed from each in turn.
func TestOneThreadInThreeProtocols(t *testing.T) {
	t.Parallel()
	p, cast := apart.forTenant(t, scripted.Stages{
		Plan: scripted.Always(scripted.Plan(tasks("a", "b", "c")...)), Solve: scripted.Always(say("this is done")), Aggregate: scripted.Always(say("all is done")),
	}.Script())
	for _, from := range []string{"agui", "orbit", "myagent"} {
		t.Run(from, func(t *testing.T) {
			p := p.in(t)
			c, thread := p.agui(), newRun()
			open := interrupts(t, c.run(thread, newRun(), "do three things "+cast.cue, planned))
			ctx, cancel := context.WithTimeout(t.Context(), process.MaxWait)
			defer cancel()
			viewer := c.follow(ctx, "/threads/"+thread+"?follow=1")
			until(t, viewer, runEnds(""))
			orbit := p.at(p.other).orbit("?after=0&session=" + thread)
			mine := p.at(p.other).myagent()
			mine.Attach(thread, 0)
			switch from {
			case "agui":
				c.run(thread, newRun(), "", answered(open, true))
			case "orbit":
				answerOrbit(t, orbit, open[0].ID, true)
			case "myagent":
				mine.Send(myagent.UserResponse, object{"step_id": open[0].ID, "content": object{"approved": true}})
			}
			frames := until(t, viewer, runEnds(""))
			require.Contains(t, speech(frames), "all is done")
			require.Contains(t, orbit.Until("agent_response").Raw, "all is done")
			require.Contains(t, string(mine.Until(myagent.AgentFinalAnswer).Raw), "all is done")
			require.Len(t, inLog[event.InputAnsweredData](t, p, thread), 1)
		})
	}
}
