package session_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/internal/auth"
	wire "github.com/waggle-dev/waggle/proto-schemas/api"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/session"
)

// web is the API of an installation.
type web struct{ *servicetest.Web }

func (r *rig) serveAPI() web {
	r.T.Helper()
	contract, err := apitest.Current()
	require.NoError(r.T, err)
	return web{r.Web(contract.Check, func(mux *http.ServeMux, a auth.Authenticator) {
		api.New(api.Config{Edge: apitest.Edge(r.Conn, r.Log, r.Send), Auth: apitest.Anywhere{Auth: a}}).Mount(mux)
	})}
}

func (w web) ask(who, method, path string) (int, string) {
	w.T.Helper()
	return w.send(who, method, path, "")
}

func (w web) send(who, method, path, body string) (int, string) {
	w.T.Helper()
	a := w.Ask(who, method, path, body, nil)
	return a.Status, a.Body
}

func TestAPIShowsSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	r.startPipeline("p")
	w := r.serveAPI()
	r.open(log, event.Preferences{Language: "en_US"})
	r.command(log, cmd.Pipeline, cmd.SendMessage, "m1", cmd.UserMessage{Content: "hello"})
	r.Until(log, event.RunStarted, 1)

	listed := func(want string) {
		t.Helper()
		var body string
		require.Eventually(t, func() bool {
			_, body = w.ask("alice", "GET", "/api/v1/sessions")
			return strings.Contains(body, want)
		}, maxWait, 5*time.Millisecond, want)
		require.Contains(t, body, `"question":"hello"`)
	}
	listed(`"session_id":"s1","status":"open","last_seq":3`)
	listed(`"state":"running"`)
	status, body := w.ask("alice", "GET", "/api/v1/sessions/s1")
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"status":"running"`)
	require.Contains(t, body, `"language":"en_US"`)
	status, body = w.ask("alice", "GET", "/api/v1/sessions/s1/events?after=1&limit=1")
	require.Equal(t, 200, status, body)
	var page struct {
		Events []event.Event
		Next   string
		More   bool
	}
	require.NoError(t, json.Unmarshal([]byte(body), &page))
	require.Len(t, page.Events, 1)
	require.EqualValues(t, 2, page.Events[0].Sequence)
	require.True(t, page.More)
	status, body = w.ask("alice", "GET", "/api/v1/sessions/s1/events?after="+page.Next)
	require.Equal(t, 200, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &page))
	require.EqualValues(t, 3, page.Events[0].Sequence)
	require.False(t, page.More)

	for _, path := range []string{"/events?after=x", "/events?after=99", "/events?limit=0", "/events?limit=1001"} {
		status, body = w.ask("alice", "GET", "/api/v1/sessions/s1"+path)
		require.Equal(t, 422, status, path+body)
	}
	// A session of another tenant is answered exactly like one that does not exist.
	for _, path := range []string{"GET /%s", "GET /%s/events", "POST /%s/cancel", "POST /%s/close", "GET /%s/state"} {
		method, path, _ := strings.Cut(path, " ")
		is, foreign := w.ask("eve", method, "/api/v1/sessions"+fmt.Sprintf(path, "s1"))
		none, missing := w.ask("eve", method, "/api/v1/sessions"+fmt.Sprintf(path, "nope"))
		require.Equal(t, 404, is)
		require.Equal(t, none, is)
		require.Equal(t, missing, foreign)
	}
	_, body = w.ask("eve", "GET", "/api/v1/sessions")
	require.JSONEq(t, `{"sessions":[]}`, strings.Replace(body, `,"total":0`, "", 1))
	status, _ = w.ask("mallory", "GET", "/api/v1/sessions")
	require.Equal(t, 401, status)
	for _, bad := range []string{"*", "%3E", "a.b", "%00", strings.Repeat("x", 10_000)} {
		status, _ = w.ask("alice", "GET", "/api/v1/sessions/"+bad)
		require.Contains(t, []int{404, 400}, status, bad)
	}

	for path, want := range map[string]int{
		"GET /nope": 404, "GET /nope/state": 404, "GET /nope/events": 404, "POST /nope/cancel": 404, "POST /nope/close": 404,
		"GET /s1/state?history=maybe": 422, "GET /s1/state?max_history=0": 422, "GET /s1/state?history=1&max_history=2": 200,
		"POST /s1/cancel": 200,
	} {
		method, path, _ := strings.Cut(path, " ")
		status, body = w.ask("alice", method, "/api/v1/sessions"+path)
		require.Equal(t, want, status, path+body)
	}
	r.Until(log, event.RunCancelled, 1)
	r.command(log, cmd.Session, cmd.Close, "close", cmd.CloseSession{})
	r.Until(log, event.SessionClosed, 1)
	listed(`"status":"closed"`)
	_, body = w.ask("alice", "GET", "/api/v1/sessions/s1")
	require.Contains(t, body, `"status":"closed"`)
}

func TestAPIShowsTheTasksOfRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("a", session.Config{})
	r.startPipeline("p")
	w := r.serveAPI()
	r.open(log, event.Preferences{})
	r.pipelineRun(log)
	status, body := w.ask("alice", "GET", "/api/v1/sessions/s1")
	require.Equal(t, 200, status, body)
	var d wire.SessionDetail
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.Len(t, d.Runs, 1)
	require.Equal(t, "steps", d.Runs[0].Mode)
	require.Equal(t, "solving", d.Runs[0].Stage)
	require.Equal(t, []wire.StepDetail{
		{StepID: "t1", Title: "one", Status: "completed", Attempt: 1, Output: "first result"},
		{StepID: "t2", Title: "two", Status: "running", Attempt: 1, Dependencies: []string{"t1"}},
	}, d.Runs[0].Steps)
	require.Equal(t, 2, d.Stats.TotalSteps)
}

func TestAPIMovesStates(t *testing.T) {
	t.Parallel()
	here, there := newRig(t), newRig(t)
	here.start("a", session.Config{StateKeys: keys})
	service := there.start("a", session.Config{StateKeys: keys})
	from, to := here.serveAPI(), there.serveAPI()
	here.open(log, event.Preferences{})
	status, body := from.ask("alice", "GET", "/api/v1/sessions/s1/state")
	require.Equal(t, 200, status, body)
	var exported event.StateExportedData
	require.NoError(t, json.Unmarshal([]byte(body), &exported))

	const path = "/api/v1/sessions/import"
	for body, want := range map[string]int{
		"": 400, "{": 400, "{}": 422, strings.Repeat("x", 300<<10): 413, string(exported.State): 422,
	} {
		status, answer := to.send("alice", "POST", path, body)
		require.Equal(t, want, status, answer)
		require.Contains(t, answer, "about:blank")
	}
	status, body = to.send("eve", "POST", path, string(exported.Signed))
	require.Equal(t, 422, status, "the state of another tenant: "+body)
	status, _ = to.send("mallory", "POST", path, string(exported.Signed))
	require.Equal(t, 401, status)
	status, body = to.send("alice", "POST", path, string(exported.Signed))
	require.Equal(t, 200, status, body)
	require.JSONEq(t, `{"session":"s1","restored":true}`, body)

	service.Stop()
	status, body = to.ask("alice", "GET", "/api/v1/sessions/s1/state")
	require.Equal(t, 503, status, body)
	require.Contains(t, body, "No session service is running")
}
