package team_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	edge "github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/team"
)

// serveGateway starts a whole gateway.
func (r *rig) serveGateway() web {
	r.T.Helper()
	contract, err := apitest.Current()
	require.NoError(r.T, err)
	return web{r.WebAt(contract.Check, func(a auth.Authenticator) string {
		s, err := edge.New(edge.Config{Addr: "127.0.0.1:0"}, edge.Deps{
			Logger: zerolog.Nop(), Conn: r.Conn, Log: r.Log, Commands: r.Send, Directory: r.Dir, Auth: a, Version: "test",
			Routes: map[string]edge.Route{"/ws": edge.Single(orbit.Dialect())},
		})
		r.Run(s, err)
		return "http://" + s.Addr().String()
	})}
}

// TestAQuestionOfADeepMember is listed once, with the outermost team and the member's path, and answered through the member's
// own team. It is withdrawn when the team is closed.
func TestAQuestionOfADeepMember(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.cast.plays(leave)
	r.start("one", team.Config{IndexEvery: time.Millisecond})
	w := r.serveGateway()
	l := r.found(deep())
	r.message(l, "m1", "backend/deep/Digger", "dig")
	r.untilInner(l, event.RunStarted, 1)
	a := r.cast.actor(agentOf(t, l, "backend", "deep", "Digger"))
	args := json.RawMessage(`{"deep":true}`)
	for _, call := range []string{"call_1", "call_2"} {
		require.NoError(t, a.put(r.Ctx, "asks-"+call, event.InputRequestedData{
			InputID: "approve_" + call, RunID: "run_m1", Scope: event.ScopeTool, CallID: call, Tool: "dig", Arguments: args, Digest: event.CallDigest("dig", args),
		}))
	}
	r.untilInner(l, event.InputRequested, 2)
	listed := func(query string, n int) (list wire.QuestionList) {
		t.Helper()
		require.Eventually(t, func() bool {
			require.Equal(t, http.StatusOK, w.Ask("olga", "GET", "/api/v1/questions"+query, "", &list).Status)
			return len(list.Questions) == n
		}, maxWait, 10*time.Millisecond, query)
		return list
	}
	q := listed("?kind=member", 2).Questions[0]
	require.Equal(t, "tool dig backend/deep/Digger "+l.Entity.String(), strings.Join([]string{q.Scope, q.Tool, q.Asker, q.TeamID}, " "))
	path := "/api/v1/questions/" + q.ID + "/answer"
	var problem wire.Problem
	require.Equal(t, 404, w.Ask("eve", "POST", path, `{"decision":"approve"}`, &problem).Status)
	require.Equal(t, 422, w.Ask("olga", "POST", path, `{"decision":"approve","digest":"other"}`, &problem).Status)
	var first wire.QuestionOutcome
	body := `{"id":"1","decision":"approve","digest":"` + q.Digest + `"}`
	require.Equal(t, 200, w.Ask("olga", "POST", path, body, &first).Status)
	require.Equal(t, "approve olga", first.Decision+" "+first.AnsweredBy)
	require.NotZero(t, first.Seq)
	require.Equal(t, 409, w.Ask("olga", "POST", path, `{"id":"2","decision":"reject"}`, &problem).Status)
	require.Equal(t, string(fault.InputAnswered)+" olga", problem.Title+" "+problem.AnsweredBy)
	listed("?state=answered", 1)
	var sent, resent wire.Accepted
	for _, out := range []*wire.Accepted{&sent, &resent} {
		require.Equal(t, 200, w.Ask("olga", "POST", "/api/v1/teams/"+l.Entity.String()+"/messages", `{"id":"hi","content":"hello"}`, out).Status)
	}
	require.Equal(t, wire.Accepted{Accepted: true, CommandID: "hi", MessageID: "hi"}, sent)
	require.Equal(t, sent, resent)
	require.Equal(t, 200, w.Ask("olga", "DELETE", "/api/v1/teams/"+l.Entity.String(), "", nil).Status)
	listed("", 0)
	listed("?state=withdrawn", 1)
}
