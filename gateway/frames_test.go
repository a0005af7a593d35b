package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// spoken adds the routes of real dialects.
func spoken(_ *gateway.Config, dep *gateway.Deps) {
	addRoutes(dep, map[string]gateway.Route{
		pathSingle: gateway.Single(orbit.Dialect()), pathSessions: gateway.Multi(myagent.New(myagent.Settings{})), pathRuns: gateway.Team(team.Teams()),
	})
}

// framesOf walks through the frames of a log, limit events a page.
func (r *rig) framesOf(l subject.Log, as string, after uint64, limit int) (frames []string, seqs []uint64) {
	r.t.Helper()
	q := url.Values{"as": {as}, "limit": {fmt.Sprint(limit)}, "after": {fmt.Sprint(after)}}
	for {
		status, body, _ := r.get("/api/v1/logs/" + string(l.Kind) + "/" + l.Entity.String() + "/frames?" + q.Encode())
		require.Equal(r.t, http.StatusOK, status, body)
		var page wire.FramePage
		require.NoError(r.t, json.Unmarshal([]byte(body), &page))
		require.Equal(r.t, as, page.Protocol)
		require.LessOrEqual(r.t, len(page.Events), limit)
		for _, e := range page.Events {
			seqs = append(seqs, e.Seq)
			for _, f := range e.Frames {
				frames = append(frames, string(f))
			}
		}
		if !page.More {
			return frames, seqs
		}
		q.Set("after", page.Next)
	}
}

// readable makes a session with runs, a tool call, a question and an answer.
func (r *rig) readable() subject.Log {
	r.t.Helper()
	_, l := r.thread(running("r1")...)
	const run, execution = "w-r1", "exec_x"
	r.happens(
		l,
		event.MessageStartedData{MessageID: "a1", RunID: run, ExecutionID: execution, Attempt: 1, Role: event.RoleAssistant},
		event.MessageDeltaData{MessageID: "a1", RunID: run, ExecutionID: execution, Attempt: 1, Text: "one "},
		event.MessageDeltaData{MessageID: "a1", RunID: run, ExecutionID: execution, Attempt: 1, Text: "two"},
		event.MessageCompletedData{MessageID: "a1", RunID: run, ExecutionID: execution, Attempt: 1, Role: event.RoleAssistant, Content: "one two", StopReason: "end"},
		event.RunCompletedData{RunID: run, ExecutionID: execution, Attempt: 1, MessageID: "a1", Content: "one two"},
	)
	r.happens(l, running("r2")...)
	r.happens(l, event.RunFailedData{RunID: "w-r2", Code: "MODEL_FAILED", Message: "The model does not answer."})
	return l
}

// TestFramesAreThoseOfAClient of the protocol, however the log is cut into pages.
func TestFramesAreThoseOfAClient(t *testing.T) {
	r := start(t, spoken)
	l := r.readable()
	for as, path := range map[string]string{"orbit": pathSingle, "agent-team": pathRuns} {
		want, seqs := r.framesOf(l, as, 0, 1000)
		require.NotEmpty(t, want, as)
		require.Len(t, seqs, 11, as)
		c := r.open(path, "after=0&watch=session/"+l.Entity.String())
		var got []string
		for len(got) == 0 || got[len(got)-1] != want[len(want)-1] {
			b, err := c.text()
			require.NoError(t, err, as)
			got = append(got, string(b))
		}
		require.GreaterOrEqual(t, len(got), len(want), as)
		require.Equal(t, want, got[len(got)-len(want):], as)
		c.leave()
	}
	want, _ := r.framesOf(l, "agui", 1, 1000)
	require.NotEmpty(t, want)
	s := r.reads("/agui/threads/"+l.Entity.String()+"?follow=1", "Last-Event-ID", "1")
	for i, one := range want {
		require.JSONEq(t, one, s.must().data, i)
	}
	for _, as := range []string{"orbit", "myagent", "agent-team", "agui", "agui-0", "agui-0+subagents"} {
		whole, all := r.framesOf(l, as, 0, 1000)
		for limit := 1; limit < 5; limit++ {
			frames, seqs := r.framesOf(l, as, 0, limit)
			require.Equal(t, whole, frames, "%s, %d a page", as, limit)
			require.Equal(t, all, seqs)
		}
		for after := range uint64(len(all)) {
			frames, seqs := r.framesOf(l, as, after, 3)
			require.Equal(t, whole[len(whole)-len(frames):], frames, "%s after %d", as, after)
			require.Equal(t, all[after:], seqs)
		}
	}
}

// TestFramesAreRefused to those who do not see the log, of protocols that do not show it, and at places that do not exist.
func TestFramesAreRefused(t *testing.T) {
	tenant := unique()
	r := start(t, spoken, authenticated(key("ann", tenant, auth.RoleUser), key("eve", unique(), auth.RoleOperator)))
	l := subject.Log{Tenant: mustTenant(t, tenant), Kind: id.KindTask, Entity: id.EntityFromExternal("t1")}
	require.NoError(t, r.append(l, unique(), event.TaskCreatedData{TaskHead: event.TaskHead{TaskID: "t1"}, Principal: "who-ann"}))
	path := "/api/v1/logs/task/t1/frames"
	for query, want := range map[string]int{
		"": http.StatusUnprocessableEntity, "?as=telnet": http.StatusUnprocessableEntity, "?as=agui": http.StatusUnprocessableEntity,
		"?as=orbit&deltas=maybe": http.StatusUnprocessableEntity, "?as=orbit&after=2": http.StatusUnprocessableEntity, "?as=orbit&after=x": http.StatusUnprocessableEntity,
		"?as=orbit&limit=0": http.StatusUnprocessableEntity, "?as=orbit&limit=1001": http.StatusUnprocessableEntity, "?as=orbit": http.StatusOK,
	} {
		status, body, _ := r.get(path+query, bearer("ann")...)
		require.Equal(t, want, status, "%s: %s", query, body)
		status, body, _ = r.get(path+query, bearer("eve")...)
		require.Equal(t, http.StatusNotFound, status, "%s: %s", query, body)
	}
}
