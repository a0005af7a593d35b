//go:build nightly

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestAGUIFollowsAThread: over all its runs, up to the end of the session, also those that waited for their turn.
func TestAGUIFollowsAThread(t *testing.T) {
	open := make(chan struct{})
	f, addrs, _ := aguiFleet(t, scripted.Sequence(say("one"), scripted.Stream(scripted.Text("two "), scripted.Gate(open), scripted.Text("is done")), say("three")), 2, "")
	c, other := aguiClient{t: t, addr: addrs[0]}, aguiClient{t: t, addr: addrs[1]}
	ctx, cancel := context.WithTimeout(t.Context(), process.MaxWait)
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

// TestAGUIAnswersDuringARun: what still runs continues while one task is asked about and answered, and who is late is told whose
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
	ctx, cancel := context.WithTimeout(t.Context(), process.MaxWait)
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
			give := func(id string, approved bool, want int) string {
				body := fmt.Appendf(nil, `{"id":%q,"resume":[{"interruptId":%q,"status":"resolved","payload":{"approved":%v}}]}`, id, q.Content.ID, approved)
				status, text := c.text(http.MethodPost, "/threads/"+thread+"/answers", body)
				require.Equal(t, want, status, text)
				return text
			}
			give("first", true, http.StatusAccepted)
			give("first", true, http.StatusAccepted) // a browser repeats a request whose connection breaks
			text := give("other", true, http.StatusConflict)
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
