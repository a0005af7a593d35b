package team_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/api"
	"github.com/waggle-dev/waggle/gateway/api/apitest"
	"github.com/waggle-dev/waggle/internal/auth"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/internal/servicetest"
	"github.com/waggle-dev/waggle/services/team"
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

// problem is an RFC 9457 document.
type problem struct {
	Title, Detail, Field string
	Status               int
}

// refused checks that a request is answered with a problem.
func (w web) refused(who, method, path, body string, status int, title, field string) {
	w.T.Helper()
	var p problem
	resp := w.Ask(who, method, path, body, &p)
	require.Equal(w.T, status, resp.Status, "%s %s %s: %+v", method, path, body, p)
	require.Equal(w.T, "application/problem+json", resp.Header.Get("Content-Type"))
	require.Equal(w.T, problem{title, p.Detail, field, status}, p)
	require.NotEmpty(w.T, p.Detail)
}

func TestTheAPIOfTeams(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", team.Config{Teams: []event.TeamDefinition{deep()}})
	w := r.serveAPI()
	w.definitions()

	var v cmd.TeamView
	resp := w.Ask("alice", "POST", "/api/v1/teams", `{"named":"outer"}`, &v)
	require.Equal(t, http.StatusCreated, resp.Status)
	path := "/api/v1/teams/" + v.TeamID
	require.Equal(t, path, resp.Header.Get("Location"))
	require.Regexp(t, `^team_[0-9a-f]{16}$`, v.TeamID)
	require.Len(t, v.Members, 8)
	l := teamLog(id.EntityFromExternal(v.TeamID))

	for _, who := range []string{"alice", "vera"} {
		var list cmd.TeamList
		require.Equal(t, 200, w.Ask(who, "GET", "/api/v1/teams", "", &list).Status)
		require.Len(t, list.Teams, 1)
		require.Equal(t, []string{"outer"}, list.Named)
		require.Equal(t, 200, w.Ask(who, "GET", path, "", &v).Status)
	}
	w.strangers(path)
	w.viewers(path)

	var ok struct {
		Accepted  bool   `json:"accepted"`
		MessageID string `json:"message_id"`
	}
	require.Equal(t, 200, w.Ask("alice", "POST", path+"/messages", `{"content":"hello","target":"backend/deep"}`, &ok).Status)
	require.True(t, ok.Accepted)
	r.settled(l, 1)
	chief := r.Stored(agentOf(t, l, "backend", "deep", "Chief"))
	d, err := event.As[event.MessageReceivedData](chief[1].Event)
	require.NoError(t, err)
	require.Equal(t, ok.MessageID, d.MessageID)
	require.Equal(t, "alice", d.Principal)

	for _, c := range []struct {
		path, body, title, field string
		status                   int
	}{
		{"/messages", `{"content":"x","target":"nobody"}`, "MEMBER_NOT_FOUND", "target", 404},
		{"/messages", `{"content":" "}`, "INVALID_FIELD", "content", 422},
		{"/messages", `{"content":1}`, "INVALID_FIELD", "content", 422},
		{"/messages", `{"content":"` + strings.Repeat("x", 150<<10) + `"}`, "MESSAGE_TOO_BIG", "content", 413},
		{"/messages", `{"content":"` + strings.Repeat("x", 300<<10) + `"}`, "MESSAGE_TOO_BIG", "", 413},
		{"/messages", ``, "BAD_JSON", "", 400},
		{"/stop", `{"target":"nobody"}`, "MEMBER_NOT_FOUND", "target", 404},
		{"/stop", `{`, "BAD_JSON", "", 400},
	} {
		w.refused("alice", "POST", path+c.path, c.body, c.status, c.title, c.field)
	}
	r.cast.plays(leave)
	require.Equal(t, 200, w.Ask("alice", "POST", path+"/messages", `{"content":"work"}`, nil).Status)
	r.untilInner(l, event.RunStarted, 2)
	require.Equal(t, 200, w.Ask("alice", "POST", path+"/stop", ``, nil).Status)
	r.settled(l, 2)
	require.Equal(t, 200, w.Ask("alice", "DELETE", path, ``, nil).Status)
	r.untilInner(l, event.TeamClosed, 3)
	w.refused("alice", "POST", path+"/messages", `{"content":"x"}`, 410, "TEAM_CLOSED", "")
	require.Equal(t, 200, w.Ask("alice", "GET", path, "", &v).Status)
	require.True(t, v.Closed)
	require.Eventually(t, func() bool { // the team leaves the list after the last event
		var list cmd.TeamList
		require.Equal(t, 200, w.Ask("alice", "GET", "/api/v1/teams", "", &list).Status)
		return len(list.Teams) == 0
	}, maxWait, 10*time.Millisecond)
	r.exact(l)
}

// TestATeamIsCreatedOnce for requests with the same id of one principal, also after it was closed.
func TestATeamIsCreatedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.start("one", team.Config{Teams: []event.TeamDefinition{deep()}})
	w := r.serveAPI()
	create := func(who, body string) (v cmd.TeamView) {
		resp := w.Ask(who, "POST", "/api/v1/teams", body, &v)
		require.Equal(t, http.StatusCreated, resp.Status, resp.Body)
		require.Equal(t, "/api/v1/teams/"+v.TeamID, resp.Header.Get("Location"))
		return v
	}
	const body = `{"id":"site-1","named":"outer"}`
	first := create("alice", body)
	require.Regexp(t, `^team_[0-9a-f]{24}$`, first.TeamID)
	require.Equal(t, first.TeamID, create("alice", body).TeamID)
	require.NotEqual(t, first.TeamID, create("bob", body).TeamID, "ids are the principal's own")
	require.NotEqual(t, first.TeamID, create("alice", `{"id":"site-2","named":"outer"}`).TeamID)
	w.refused("alice", "POST", "/api/v1/teams", `{"id":"`+strings.Repeat("i", 201)+`","named":"outer"}`, 422, "INVALID_FIELD", "id")
	require.Equal(t, 200, w.Ask("alice", "DELETE", "/api/v1/teams/"+first.TeamID, ``, nil).Status)
	r.Until(teamLog(id.EntityFromExternal(first.TeamID)), event.TeamClosed, 1)
	require.True(t, create("alice", body).Closed)
}

// definitions checks that wrong ones are refused with the place.
func (w web) definitions() {
	w.T.Helper()
	for _, c := range []struct{ body, field string }{
		{`{"name":"t","members":[]}`, "members"},
		{`{"name":"t","coordinator":"b","members":[{"name":"a"}]}`, "coordinator"},
		{`{"name":"t","coordinator":"a","members":[{"name":"a"},{"name":"a"}]}`, "members[1].name"},
		{`{"name":"t","coordinator":"a","members":[{"name":"a","tools":["x"]}]}`, "members[0].tools[0]"},
		{`{"name":"t","coordinator":"a","members":[{"name":"a"},{"name":"n","team":{"name":"t","coordinator":"x","members":[{"name":"x"}]}}]}`, "members[1].team.name"},
		{`{"named":"outer","members":[{"name":"a"}]}`, "named"},
	} {
		w.refused("alice", "POST", "/api/v1/teams", c.body, 422, "TEAM_INVALID", c.field)
	}
	w.refused("alice", "POST", "/api/v1/teams", `{"named":"none"}`, 404, "TEAM_NOT_FOUND", "named")
	w.refused("alice", "POST", "/api/v1/teams", `{"name":"a","name":"b"}`, 400, "BAD_JSON", "")
	w.refused("alice", "POST", "/api/v1/teams", ``, 400, "BAD_JSON", "")
	w.refused("nobody", "GET", "/api/v1/teams", ``, 401, "UNAUTHENTICATED", "")
}

// strangers checks that another tenant sees nothing of a team.
func (w web) strangers(path string) {
	w.T.Helper()
	var list cmd.TeamList
	require.Equal(w.T, 200, w.Ask("eve", "GET", "/api/v1/teams", "", &list).Status)
	require.Empty(w.T, list.Teams)
	w.refused("eve", "GET", path, "", 404, "TEAM_NOT_FOUND", "")
	w.refused("eve", "DELETE", path, "", 404, "TEAM_NOT_FOUND", "")
	w.refused("eve", "POST", path+"/messages", `{"content":"x"}`, 404, "TEAM_NOT_FOUND", "")
	w.refused("eve", "POST", path+"/stop", ``, 404, "TEAM_NOT_FOUND", "")
}

// viewers checks that who may watch changes nothing.
func (w web) viewers(path string) {
	w.T.Helper()
	w.refused("vera", "POST", "/api/v1/teams", `{"named":"outer"}`, 403, "FORBIDDEN", "")
	w.refused("vera", "DELETE", path, "", 403, "FORBIDDEN", "")
	w.refused("vera", "POST", path+"/messages", `{"content":"x"}`, 403, "FORBIDDEN", "")
	w.refused("vera", "POST", path+"/stop", ``, 403, "FORBIDDEN", "")
}
