package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
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

// TestAGUIFollowsAThread: over all its runs, up to the end of the session, also those that waited for their turn.
func TestAGUIFollowsAThread(t *testing.T) {
	open := make(chan struct{})
	f, addrs, _ := aguiFleet(t, scripted.Sequence(say("one"), scripted.Stream(scripted.Text("two "), scripted.Gate(open), scripted.Text("is done")), say("three")), 2, "")
	c, other := aguiClient{t: t, addr: addrs[0]}, aguiClient{t: t, addr: addrs[1]}
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	thread, second, third := newRun(), newRun(), newRun()
	c.run(thread, newRun(), "first", nil)
	viewer := other.follow(ctx, "/threads/"+thread+"?follow=1")
	until(t, viewer, runEnds(""))

	mine := make(chan []aguiFrame, 2)
	go func() { mine <- c.run(thread, second, "second", nil) }()
	until(t, viewer, func(f aguiFrame) bool { return f.Type == wire.TextMessageContent })
	resp := c.request(ctx, http.MethodPost, "", aguiInput(thread, third, "third", nil))
	defer func() { _ = resp.Body.Close() }()
	queued := make(chan []aguiFrame, 1)
	waits := make(chan struct{})
	go func() {
		queued <- c.stream(resp, func(f aguiFrame) bool {
			if f.Name == wire.CustomQueued {
				close(waits)
			}
			return true
		})
	}()
	<-waits
	close(open)
	seen := until(t, viewer, runEnds(third))
	order := []string{}
	for _, f := range seen {
		if f.Type == wire.RunStarted || f.Type == wire.RunFinished {
			order = append(order, f.Type+" "+f.RunID)
		}
	}
	require.Equal(t, []string{wire.RunFinished + " " + second, wire.RunStarted + " " + third, wire.RunFinished + " " + third}, order)
	require.Equal(t, "two is done", speech(<-mine))
	own := <-queued
	require.Equal(t, "three", speech(own))
	require.Equal(t, wire.RunStarted, own[0].Type)
	require.Equal(t, wire.CustomQueued, own[1].Name)
	require.Len(t, f.llm.Exchanges(), 3)
}

// TestAGUIAnswersDuringARun: what still runs goes on while one task is asked about and answered, and who is late is told whose
// answer counts.
func TestAGUIAnswersDuringARun(t *testing.T) {
	open := make(chan struct{})
	f := newFleet(t, scripted.Stages{
		Plan: scripted.Always(scripted.Plan(tasks("w1", "slow")...)),
		Tasks: map[string]scripted.Script{
			"w1":   scripted.InTurn(scripted.Stream(scripted.Calls(0, scripted.Call{ID: "w", Name: "workspace_write_file", Arguments: `{"path":"a.txt","content":"x"}`})), say("written")),
			"slow": scripted.Always(scripted.Stream(scripted.Text("I am "), scripted.Gate(open), scripted.Text("slow"))),
		},
		Aggregate: scripted.Always(say("all is done")),
	}.Script())
	f.env = []string{"WAGGLE_TOOLS_BUILTIN_APPROVAL=writes"}
	f.configure("gateway: {message_rate: 1000, message_burst: 1000}\n")
	f.serve("session,pipeline,worker,tools")
	_, addr := f.gateway()
	c := aguiClient{t: t, addr: addr}
	thread := newRun()
	answered := 0
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	resp := c.request(ctx, http.MethodPost, "", aguiInput(thread, newRun(), "write", func(in map[string]any) {
		in["forwardedProps"] = map[string]any{"waggle": map[string]any{"mode": "plan", "confirmPlan": false}}
	}))
	defer func() { _ = resp.Body.Close() }()
	frames := c.stream(resp, func(f aguiFrame) bool {
		var q struct {
			ActivityType string
			Content      struct{ ID string }
		}
		_ = json.Unmarshal([]byte(f.data), &q)
		if f.Type == wire.ActivitySnapshot && q.ActivityType == wire.ActivityQuestion && answered == 0 {
			answered++
			body := fmt.Appendf(nil, `{"resume":[{"interruptId":%q,"status":"resolved","payload":{"approved":true}}]}`, q.Content.ID)
			status, text := c.text(http.MethodPost, "/threads/"+thread+"/answers", body)
			require.Equal(t, http.StatusAccepted, status, text)
			status, text = c.text(http.MethodPost, "/threads/"+thread+"/answers", body)
			require.Equal(t, http.StatusConflict, status, text)
			require.Contains(t, text, `"answeredBy":"anonymous"`)
			require.Contains(t, text, `"decision":"approve"`)
			close(open)
		}
		return true
	})
	require.Equal(t, 1, answered)
	require.True(t, slices.ContainsFunc(frames, func(f aguiFrame) bool { return f.Name == wire.CustomAnswered }))
	last := frames[len(frames)-1]
	require.Equal(t, wire.RunFinished, last.Type)
	require.Equal(t, wire.OutcomeSuccess, last.Outcome.Type, "one stretch: something always moved")
	require.Contains(t, speech(frames), "all is done")
}

// TestAGUIStopsATask of a plan, and the rest goes on.
func TestAGUIStopsATask(t *testing.T) {
	_, addrs, _ := aguiFleet(t, scripted.Stages{
		Plan:      scripted.Always(scripted.Plan(tasks("a", "endless")...)),
		Tasks:     map[string]scripted.Script{"endless": scripted.Always(scripted.Stream(scripted.Text("I begin. "), scripted.Hang()))},
		Solve:     scripted.Always(say("done")),
		Aggregate: scripted.Always(say("all is done")),
	}.Script(), 1, "")
	c := aguiClient{t: t, addr: addrs[0]}
	thread := newRun()
	ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
	defer cancel()
	resp := c.request(ctx, http.MethodPost, "", aguiInput(thread, newRun(), "do it", func(in map[string]any) {
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

// TestAGUIOlderClientsAndAbilities: the variant of clients that say no version, and what any client is told.
func TestAGUIOlderClientsAndAbilities(t *testing.T) {
	_, addrs, _ := aguiFleet(t, threeTasks(), 1, "pipeline: {retry_backoff: 20ms}\n")
	c := aguiClient{t: t, addr: addrs[0]}
	thread := newRun()
	unversioned := func(in map[string]any) {
		planned(in)
		delete(in, "protocolVersion")
	}
	open := interrupts(t, c.run(thread, newRun(), "do three things", unversioned))
	frames := c.run(thread, newRun(), "", func(in map[string]any) { answered(open, true)(in); delete(in, "protocolVersion") })
	require.Equal(t, wire.RunFinished, frames[len(frames)-1].Type)
	for _, f := range frames {
		require.NotContains(t, f.Type, "SUBAGENT")
		require.NotContains(t, f.data, "subagentRunId")
	}
	require.True(t, slices.ContainsFunc(frames, func(f aguiFrame) bool { return strings.Contains(f.data, wire.ActivitySubagent) }))
	status, text := c.text(http.MethodGet, "/capabilities", nil)
	require.Equal(t, http.StatusOK, status)
	var can wire.Capabilities
	require.NoError(t, json.Unmarshal([]byte(text), &can))
	require.True(t, can.Transport.Streaming && can.Transport.Resumable && can.HumanInTheLoop.Interrupts && can.Tools.ClientProvided)
	i := slices.IndexFunc(can.Tools.Items, func(t wire.Tool) bool { return t.Name == "workspace_write_file" })
	require.GreaterOrEqual(t, i, 0, "%v", can.Tools.Items)
	require.Contains(t, string(can.Tools.Items[i].Parameters), `"path"`)
}

// TestOneThreadInThreeProtocols: a thread of AG-UI is open in ORBIT and MyAgent, too. Each sees all of it, and its plan is
// confirmed from each in turn.
func TestOneThreadInThreeProtocols(t *testing.T) {
	_, addrs, _ := aguiFleet(t, threeTasks(), 2, "pipeline: {retry_backoff: 20ms}\n")
	c := aguiClient{t: t, addr: addrs[0]}
	for _, from := range []string{"agui", "orbit", "myagent"} {
		t.Run(from, func(t *testing.T) {
			c.t = t
			thread := newRun()
			open := interrupts(t, c.run(thread, newRun(), "do three things", planned))
			ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
			defer cancel()
			viewer := c.follow(ctx, "/threads/"+thread+"?follow=1")
			until(t, viewer, runEnds(""))
			orbit := client.DialOrbit(t, "ws://"+addrs[1]+"/ws?after=0&session="+thread)
			mine := client.DialMyAgent(t, addrs[1])
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
			require.Len(t, inLog[event.InputAnsweredData](t, addrs[0], thread), 1)
		})
	}
}
