package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// threeTasks is a plan of three tasks, one of which needs another try.
func threeTasks() scripted.Script {
	return scripted.Stages{
		Plan: scripted.Always(scripted.Plan(tasks("a", "b", "c")...)),
		Tasks: map[string]scripted.Script{
			"b": scripted.InTurn(scripted.Fail(http.StatusBadRequest, "invalid_request_error", "no"), say("b is done")),
		},
		Solve: scripted.Always(say("this is done")), Aggregate: scripted.Always(say("all is done")), Chat: scripted.Always(say("hello to you")),
	}.Script()
}

// TestAGUIResumesBehindEveryFrame: a stream that breaks after any frame, and is resumed at another gateway, gives the
// whole, byte for byte.
func TestAGUIResumesBehindEveryFrame(t *testing.T) {
	t.Parallel()
	p, cast := apart.forTenant(t, threeTasks())
	c, other := p.agui(), p.at(p.other).agui()
	thread, ask, answer := "thread with spaces/ü", newRun(), newRun()
	first := c.run(thread, ask, "do three things "+cast.cue, planned)
	second := c.run(thread, answer, "", answered(interrupts(t, first), true))
	require.Equal(t, wire.RunFinished, second[len(second)-1].Type)
	cuts := 0
	for run, whole := range map[string][]aguiFrame{ask: first, answer: second} {
		path := "/threads/" + url.PathEscape(thread) + "/runs/" + run
		for i, f := range whole[:len(whole)-1] {
			rest := other.get(path, "Last-Event-ID", f.id)
			require.Equal(t, whole[i+1:], rest, "behind frame %d (%s) of %d", i+1, f.Type, len(whole))
			cuts++
		}
		status, _ := other.text(http.MethodGet, path, nil, "Last-Event-ID", whole[len(whole)-1].id)
		require.Equal(t, http.StatusNoContent, status)
		cold := other.get(path)
		require.Equal(t, wire.RunStarted, cold[0].Type)
		require.Equal(t, datas(whole)[len(whole)-1], datas(cold)[len(cold)-1], "it ends as it ended")
	}
	whole := append(slices.Clone(first), second...)
	joined := other.get("/threads/" + url.PathEscape(thread))
	require.Equal(t, said(whole), said(joined))
	t.Logf("%d cuts", cuts)
}

// TestAGUITenantsMeetNowhere: each endpoint answers the same for a thread of another tenant as for one that does not exist.
func TestAGUITenantsMeetNowhere(t *testing.T) {
	t.Parallel()
	reds, cast := apart.forTenant(t, scripted.Always(say("crimson")))
	blues, other := apart.forTenant(t, scripted.Always(say("azure")))
	red, blue, eye := reds.agui(), blues.agui(), aguiClient{t, reds.addr, reds.key + "-viewer"}
	thread, run := newRun(), newRun()
	red.run(thread, run, "hello "+cast.cue, nil)
	checked := 0
	for _, q := range []struct{ method, path, body string }{
		{"GET", "/threads/THREAD", ""},
		{"GET", "/threads/THREAD?follow=1", ""},
		{"GET", "/threads/THREAD?after=3", ""},
		{"GET", "/threads/THREAD/runs/RUN", ""},
		{"GET", "/threads/THREAD/runs/RUN?after=3", ""},
		{"GET", "/threads/THREAD/messages", ""},
		{"POST", "/threads/THREAD/cancel", `{}`},
		{"POST", "/threads/THREAD/cancel", `{"runId":"RUN"}`},
		{"POST", "/threads/THREAD/answers", `{"resume":[{"interruptId":"x","status":"cancelled"}]}`},
	} {
		of := func(thread, run string) (int, string) {
			named := strings.NewReplacer("THREAD", thread, "RUN", run)
			return blue.text(q.method, named.Replace(q.path), []byte(named.Replace(q.body)))
		}
		status, text := of(thread, run)
		wantStatus, want := of(newRun(), newRun())
		require.Equal(t, http.StatusNotFound, status, "%s %s: %s", q.method, q.path, text)
		require.Equal(t, want, text, "%s %s", q.method, q.path)
		require.Equal(t, wantStatus, status)
		checked++
	}
	frames := blue.run(thread, run, "mine "+other.cue, nil)
	require.Equal(t, wire.RunFinished, frames[len(frames)-1].Type, "the same id is another thread in another tenant")
	require.Equal(t, said(red.get("/threads/"+thread)), said(eye.get("/threads/"+thread)), "a viewer sees")
	for _, path := range []string{"", "/threads/" + thread + "/cancel", "/threads/" + thread + "/answers"} {
		status, _ := eye.text(http.MethodPost, path, aguiInput(thread, newRun(), "hello", nil))
		require.Equal(t, http.StatusForbidden, status, "a viewer can do nothing: %s", path)
	}
	t.Logf("%d requests", checked)
}

// TestAGUIRefusesBadInput: nothing that a client sends is the server's fault.
func TestAGUIRefusesBadInput(t *testing.T) {
	t.Parallel()
	p, cast := apart.forTenant(t, scripted.Always(say("hello")))
	c := p.agui()
	for body, want := range map[string]int{
		``: 400, `{`: 400, `[]`: 422, `null`: 422, `{"threadId":1}`: 422, `{"threadId":"a","threadId":"b"}`: 400, "\xff": 400,
		`{"threadId":"a","runId":"b","messages":null}`:                                                                  422,
		`{"threadId":"a","runId":"` + strings.Repeat("x", 201) + `","messages":[]}`:                                     422,
		`{"threadId":"a","runId":"b\u0000","messages":[]}`:                                                              422,
		`{"threadId":"a","runId":"b","messages":[],"protocolVersion":"2.0"}`:                                            422,
		`{"threadId":"a","runId":"b","messages":[],"forwardedProps":{"waggle":{"mode":7}}}`:                             422,
		`{"threadId":"a","runId":"b","messages":[],"forwardedProps":{"waggle":{"onBusy":"never"}}}`:                     422,
		`{"threadId":"a","runId":"b","messages":[],"resume":[{"interruptId":"x","status":"maybe"}]}`:                    422,
		`{"threadId":"a","runId":"b","messages":[{"id":"m","role":"user","content":7}]}`:                                422,
		`{"threadId":"a","runId":"b","messages":[{"id":"m","role":"user","content":"` + longText("x", 300<<10) + `"}]}`: 413,
	} {
		status, text := c.text(http.MethodPost, "", []byte(body))
		if len(body) > 60 {
			body = body[:60]
		}
		require.Equal(t, want, status, "%s: %s", body, text)
		require.Contains(t, text, `"detail"`)
	}
	for _, after := range []string{"x", "-1", "1.x", "99999", "1.0", "01", "18446744073709551616"} {
		thread := newRun()
		c.run(thread, newRun(), "hello "+cast.cue, nil)
		status, text := c.text(http.MethodGet, "/threads/"+thread, nil, "Last-Event-ID", after)
		require.Equal(t, 400, status, "%s: %s", after, text)
	}
}

// TestAGUIClientsCarryOutTheirTools: a call of a client's tool ends the run until the client has its result, and the model
// gets the context, the conversation before, and the results.
func TestAGUIClientsCarryOutTheirTools(t *testing.T) {
	t.Parallel()
	p, cast := apart.forTenant(t, scripted.InTurn(
		scripted.Stream(scripted.Text("Let me look. "), scripted.Calls(0,
			scripted.Call{ID: "c1", Name: "where_am_i", Arguments: `{"exact":true}`}, scripted.Call{ID: "c2", Name: "paint", Arguments: `{}`})),
		say("You are in Bern."),
		scripted.Stream(scripted.Calls(0, scripted.Call{ID: "c3", Name: "paint", Arguments: `{}`})),
		say("Good night."),
	))
	c, other := p.agui(), p.at(p.other).agui()
	thread := newRun()
	with := func(messages ...any) func(map[string]any) {
		return func(in map[string]any) {
			in["tools"] = []any{
				map[string]any{"name": "where_am_i", "description": "the place", "parameters": map[string]any{"type": "object"}},
				map[string]any{"name": "paint", "description": "paints"},
			}
			in["context"] = []any{map[string]any{"description": "the time", "value": "noon"}}
			list, _ := in["messages"].([]any)
			in["messages"] = append(messages, list...)
		}
	}
	result := func(id, call, text string) any {
		return map[string]any{"id": id, "role": "tool", "toolCallId": call, "content": text}
	}
	first := c.run(thread, newRun(), "where am I? "+cast.cue, with(map[string]any{"id": "h1", "role": "assistant", "content": "an earlier answer"}))
	last := first[len(first)-1]
	require.Equal(t, wire.RunFinished, last.Type)
	require.Equal(t, wire.OutcomeSuccess, last.Outcome.Type)
	require.Equal(t, []string{"c1", "c2"}, last.Outcome.PendingToolCallIDs)
	asked := cast.asked()[0].Prompt
	require.Contains(t, asked.Messages[0].Content, "an earlier answer")
	require.Contains(t, asked.Messages[1].Content, "For your information: the time\nnoon")
	require.Contains(t, asked.Messages[1].Content, "where am I?")

	second := other.run(thread, newRun(), "", with(result("t1", "c1", "Bern"), result("t2", "c2", "painted"))) // at another gateway
	require.Equal(t, "You are in Bern.", speech(second))
	told := cast.asked()[1].Prompt.Messages
	require.Equal(t, "Bern", told[len(told)-2].Content)
	require.Equal(t, "painted", told[len(told)-1].Content)

	third := c.run(thread, newRun(), "paint", with())
	require.Equal(t, []string{"c3"}, third[len(third)-1].Outcome.PendingToolCallIDs)
	fourth := c.run(thread, newRun(), "never mind", with()) // the call is given up, and the message is answered
	require.Equal(t, "Good night.", speech(fourth))
	given := cast.asked()[3].Prompt.Messages
	require.Equal(t, "Error: not answered", given[len(given)-1].Content)

	status, text := c.text(http.MethodGet, "/threads/"+thread+"/messages?limit=4", nil)
	require.Equal(t, http.StatusOK, status)
	var page wire.History
	require.NoError(t, json.Unmarshal([]byte(text), &page))
	require.Len(t, page.Messages, 4)
	status, text = c.text(http.MethodGet, "/threads/"+thread+"/messages?limit=100&before="+page.Before, nil)
	require.Equal(t, http.StatusOK, status, text)
	require.Contains(t, text, `"toolCallId":"c1"`)
}
