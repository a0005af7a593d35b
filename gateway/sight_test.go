package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestSessionsOfOthers: to a principal that does not see a session it does not exist, whichever way it asks: by the HTTP
// API, as a stream, in announcements, as its own session, as a watched run, by a frame, as a thread of AG-UI.
func TestSessionsOfOthers(t *testing.T) {
	s := startAll(t, authenticated(
		key("ann", "red", auth.RoleUser), key("ben", "red", auth.RoleUser),
		key("op", "red", auth.RoleOperator), key("viewer", "red", auth.RoleViewer),
	))
	s.indexed = true
	l := subject.Log{Tenant: mustTenant(t, "red"), Kind: id.KindSession, Entity: id.EntityFromExternal(unique())}
	require.NoError(t, s.append(l, unique(), event.SessionCreatedData{Dialect: "orbit", Principal: "who-ann"}))
	live := s.reads("/api/v1/live", bearer("ben")...)
	seesLive := s.reads("/api/v1/live", bearer("ann")...)
	s.answers(l, "secret")
	session := l.Entity.String()
	for who, sees := range map[string]bool{"ann": true, "ben": false, "op": true, "viewer": true} {
		header := bearer(who)
		want := http.StatusNotFound
		if sees {
			want = http.StatusOK
		}
		status, body, _ := s.get("/api/v1/sessions/"+session+"/events", header...)
		require.Equal(t, want, status, "%s: %s", who, body)
		for _, path := range []string{"", "/runs/r", "/messages"} {
			status, body, _ = s.get("/agui/threads/"+session+path, header...)
			require.Equal(t, !sees, strings.Contains(body, string(fault.SessionNotFound)), "%s %s: %d %s", who, path, status, body)
		}
		require.Equal(t, want, status, "%s: %s", who, body)
		status, body, _ = s.get("/api/v1/sessions", header...)
		require.Equal(t, http.StatusOK, status)
		if sees {
			require.Contains(t, body, session, who)
		} else {
			require.NotContains(t, body, session, who)
		}
	}
	s.open(pathSingle, "session="+session+"&after=0", bearer("ben")...).expectRefusal(fault.SessionNotFound, 4404)
	s.open(pathSingle, "watch=session/"+session, bearer("ben")...).expectRefusal(fault.RunNotFound, 4404)
	c := s.open(pathSessions, "", bearer("ben")...)
	c.expectFrame("connected")
	for _, ask := range []string{"act", "export", "resume"} {
		c.ask(multiRequest{Ask: ask, Session: session, Text: "x", After: ptr(uint64(0))})
		require.Equal(t, string(fault.SessionExpired), c.expectFrame("refused").Code, ask)
	}
	c.leave()
	for path, method := range map[string]string{
		"": http.MethodDelete, "/cancel": http.MethodPost, "/state": http.MethodGet, "/stream": http.MethodGet, "/events": http.MethodGet,
	} {
		status, body, _ := s.request(method, "/api/v1/sessions/"+session+path, bearer("ben")...)
		require.Equal(t, http.StatusNotFound, status, "%s: %s", path, body)
	}
	for path, body := range map[string]string{
		"":                                 `{"threadId":"` + session + `","runId":"x","messages":[{"id":"m","role":"user","content":"x"}]}`,
		"/threads/" + session + "/cancel":  `{}`,
		"/threads/" + session + "/answers": `{"resume":[{"interruptId":"q","status":"resolved","payload":true}]}`,
	} {
		status, body := s.post("/agui"+path, body, bearer("ben")...)
		require.Equal(t, http.StatusNotFound, status, "%s: %s", path, body)
		require.Contains(t, body, string(fault.SessionNotFound))
	}
	require.Empty(t, s.inbox(session), "the services were sent nothing")
	require.Equal(t, l.Name(), seesLive.must().of(t).Subject)
	own := subject.Log{Tenant: l.Tenant, Kind: id.KindSession, Entity: id.EntityFromExternal(unique())}
	require.NoError(t, s.append(own, unique(), event.SessionCreatedData{Dialect: "orbit", Principal: "who-ben"}))
	require.Equal(t, own.Name(), live.must().of(t).Subject, "announcements of the other session were not shown")
}

// TestCallsOfOthers: the log of a call outside of sessions, with its arguments and its result, is shown to the principal that
// made it, and to those who see all.
func TestCallsOfOthers(t *testing.T) {
	r := start(t, authenticated(
		key("ann", "red", auth.RoleUser), key("ben", "red", auth.RoleUser), key("op", "red", auth.RoleOperator), key("eve", "blue", auth.RoleOperator),
	))
	l := subject.Log{Tenant: mustTenant(t, "red"), Kind: id.KindCall, Entity: id.EntityFromExternal(unique())}
	require.NoError(t, r.append(l, unique(), event.CallStartedData{CallID: l.Entity.String(), Principal: "who-ann", Arguments: []byte(`{"secret":1}`)}))
	for who, want := range map[string]int{"ann": http.StatusOK, "op": http.StatusOK, "ben": http.StatusNotFound, "eve": http.StatusNotFound} {
		for _, part := range []string{"head", "events"} {
			status, body, _ := r.get("/api/v1/logs/call/"+l.Entity.String()+"/"+part, bearer(who)...)
			require.Equal(t, want, status, "%s %s: %s", who, part, body)
		}
	}
}

// TestSessionsOfTheTenant: the operator can let all of a tenant see its sessions.
func TestSessionsOfTheTenant(t *testing.T) {
	r := start(t, authenticated(key("ann", "red"), key("ben", "red")), func(_ *gateway.Config, d *gateway.Deps) {
		d.Access.Tenants = map[string]access.Settings{"red": {See: access.Tenant}}
	})
	l := subject.Log{Tenant: mustTenant(t, "red"), Kind: id.KindSession, Entity: id.EntityFromExternal(unique())}
	require.NoError(t, r.append(l, unique(), event.SessionCreatedData{Dialect: "orbit", Principal: "who-ann"}))
	status, body, _ := r.get("/api/v1/sessions/"+l.Entity.String()+"/events", bearer("ben")...)
	require.Equal(t, http.StatusOK, status, body)
}
