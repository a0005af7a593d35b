package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestStreamsOfTasksAndTeams: each kind has its path, and its own word for what does not
// exist.
func TestStreamsOfTasksAndTeams(t *testing.T) {
	r := start(t)
	for path, kind := range map[string]id.Kind{"tasks": id.KindTask, "teams": id.KindTeam} {
		l := subject.Log{Tenant: id.DefaultTenant, Kind: kind, Entity: id.EntityFromExternal(unique())}
		require.NoError(t, r.append(l, unique(), event.NoticeData{Message: "hello"}))
		require.NoError(t, r.append(l, unique(), event.NoticeData{Message: "again"}))
		s := r.reads("/api/v1/" + path + "/" + l.Entity.String() + "/stream?after=1")
		m := s.must()
		require.Equal(t, []string{"2", "notice"}, []string{m.id, m.event})
		s.leave()
		status, body, _ := r.get("/api/v1/" + path + "/nothing/stream")
		require.Equal(t, http.StatusNotFound, status)
		require.Contains(t, body, strings.ToUpper(path[:4])+"_NOT_FOUND")
	}
}

// TestRolesThatMayStream: as everywhere, a session of another tenant does not exist, and a viewer
// may look.
func TestRolesThatMayStream(t *testing.T) {
	r := start(t, authenticated(
		key("alice", "acme"), key("bob", "globex"), key("eve", "acme", auth.RoleViewer), key("robot", "acme", auth.RoleAgent)))
	l := r.session("acme", "secret")
	for name, c := range map[string]struct {
		header []string
		status int
		code   string
	}{
		"no credentials":    {nil, 401, "UNAUTHENTICATED"},
		"wrong credentials": {bearer("mallory"), 401, "UNAUTHENTICATED"},
		"another tenant":    {bearer("bob"), 404, "SESSION_NOT_FOUND"},
		"an agent":          {bearer("robot"), 403, "FORBIDDEN"},
		"another page":      {append(bearer("alice"), "Origin", "https://evil.example"), 403, "ORIGIN_REFUSED"},
	} {
		status, body, head := r.get(streamOf(l), c.header...)
		require.Equal(t, c.status, status, name)
		require.Contains(t, head.Get("Content-Type"), "application/problem+json", name)
		require.Contains(t, body, c.code, name)
	}
	for _, who := range []string{"alice", "eve"} {
		s := r.reads(streamOf(l), bearer(who)...)
		require.Equal(t, "1", s.must().id)
		s.leave()
	}
	status, _, head := r.request(http.MethodHead, streamOf(l), bearer("alice")...)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "text/event-stream; charset=utf-8", head.Get("Content-Type"))
}

// Invalid positions are refused before anything is shown.
func TestInvalidPositions(t *testing.T) {
	r := start(t)
	l := r.session("default", "one")
	for _, bad := range []string{"x", "-1", "1e3", "3", "18446744073709551616", "1.x", "01"} {
		status, body, _ := r.get(streamOf(l), "Last-Event-ID", bad)
		require.Equal(t, http.StatusUnprocessableEntity, status, bad)
		require.Contains(t, body, `"field":"Last-Event-ID"`, bad)
		status, body, _ = r.get(streamOf(l) + "?after=" + bad)
		require.Equal(t, http.StatusUnprocessableEntity, status, bad)
		require.Contains(t, body, `"title":"CURSOR_INVALID"`, bad)
	}
	s := r.reads(streamOf(l)+"?after=0", "Last-Event-ID", "2") // a client that reconnects repeats its address
	r.answers(l, "two")
	require.Equal(t, "3", s.must().id)
}

// A stream of an expired history reports where the rest begins. A stream of a deleted session
// is refused.
func TestStreamsReportMissingHistory(t *testing.T) {
	r := start(t)
	l := r.session("default", "one", "two", "three")
	r.expire(l, 2)
	s := r.reads(streamOf(l))
	m := s.must()
	var p struct {
		Title string
		First uint64
	}
	require.NoError(t, json.Unmarshal([]byte(m.data), &p))
	require.Equal(t, []string{"", "problem", "HISTORY_EXPIRED"}, []string{m.id, m.event, p.Title})
	require.EqualValues(t, 3, p.First)
	require.Equal(t, "3", s.must().id)
	require.Equal(t, "4", s.must().id)

	r.remove(l)
	status, body, _ := r.get(streamOf(l), "Last-Event-ID", "4")
	require.Equal(t, http.StatusGone, status)
	require.Contains(t, body, "SESSION_DELETED")
}

// TestDrainSendsStreamsElsewhere: a stream ends with a word, after the events that were
// appended before, and its client resumes at another gateway.
func TestDrainSendsStreamsElsewhere(t *testing.T) {
	r, other := start(t), start(t)
	l := r.session("default", "one")
	s := r.reads(streamOf(l))
	s.must()
	last := s.must()
	drained := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), maxWait)
		defer cancel()
		drained <- r.srv.Drain(ctx)
	}()
	_, comment := s.ends()
	require.Equal(t, "waggle DRAINING", comment)
	require.Equal(t, "1000", s.retry)
	require.NoError(t, <-drained)
	r.answers(l, "two")
	next := other.reads(streamOf(l), "Last-Event-ID", last.id)
	require.Equal(t, "3", next.must().id)
}

// TestStreamsAreCounted with the sockets of a gateway and of a principal.
func TestStreamsAreCounted(t *testing.T) {
	t.Parallel()
	r := start(t, authenticated(key("alice", "acme"), key("bob", "acme")), func(c *gateway.Config, _ *gateway.Deps) {
		c.MaxConnections, c.PerPrincipal, c.PingInterval = 2, 1, 10*time.Millisecond
	})
	l := r.session("acme", "one")
	s := r.reads(streamOf(l), bearer("alice")...)
	require.EqualValues(t, 1, r.metric("waggle_gateway_connections", "events"))
	status, body, _ := r.get(streamOf(l), bearer("alice")...)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, body, "TOO_MANY_CONNECTIONS")
	other := r.dial("session="+l.Entity.String(), bearer("bob")...)
	other.ready()
	status, body, _ = r.get(streamOf(l), bearer("bob")...)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "OVERLOADED")
	s.must()
	last := s.must()
	for len(s.comments) == 0 {
		r.answers(l, "more") // so that next returns
		last = s.must()
	}
	var at uint64
	_, err := fmt.Sscanf(s.comments[0], "hb %d", &at)
	require.NoError(t, err, s.comments[0])
	require.Less(t, at, last.of(t).Sequence+1, "the position of an event that has come")
}

// TestRevokedCredentialsEndStreams within seconds.
func TestRevokedCredentialsEndStreams(t *testing.T) {
	t.Parallel()
	k := key("alice", "acme")
	k.Expires = time.Now().Add(time.Hour)
	var cl clock
	r := start(t, authenticated(k), func(_ *gateway.Config, d *gateway.Deps) { d.Clock = cl.now })
	s := r.reads(streamOf(r.session("acme", "one")), bearer("alice")...)
	cl.advance(time.Hour)
	last, comment := s.ends()
	require.Equal(t, "waggle CREDENTIALS_EXPIRED", comment)
	require.Contains(t, last.data, "CREDENTIALS_EXPIRED")
}

// TestLiveEvents: a tenant's announcements of the types that the query names, of all its
// logs but inboxes, and of no other tenant.
func TestLiveEvents(t *testing.T) {
	r := start(t, authenticated(key("alice", "acme"), key("bob", "globex")))
	before := r.session("acme", "before")
	all, runs := r.reads("/api/v1/live", bearer("alice")...), r.reads("/api/v1/live?types=run.completed,run.failed", bearer("alice")...)
	foreign := r.reads("/api/v1/live", bearer("bob")...)
	r.answers(before, "one")
	m := all.must()
	require.Equal(t, []string{"", "run.completed"}, []string{m.id, m.event})
	require.Equal(t, before.Name(), m.of(t).Subject)
	require.EqualValues(t, 3, m.of(t).Sequence)

	inbox := subject.Log{Tenant: before.Tenant, Kind: id.KindInbox, Entity: id.EntityFromExternal(unique())}
	require.NoError(t, r.append(inbox, unique(), event.NoticeData{Message: "of a client"}))
	fresh := r.session("acme", "two")
	require.Equal(t, "session.created", all.must().event)
	require.Equal(t, fresh.Name(), all.must().of(t).Subject)
	require.Equal(t, before.Name(), runs.must().of(t).Subject)
	require.Equal(t, fresh.Name(), runs.must().of(t).Subject, "types that were not asked for are not shown")
	own := r.session("globex")
	require.Equal(t, own.Name(), foreign.must().of(t).Subject, "of another tenant nothing is shown")

	status, body, _ := r.get("/api/v1/live?types=run.completed,no.such", bearer("alice")...)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, body, `"field":"types"`)
}

// TestAStreamOfASessionWithoutEvents waits for them, if the session may still be opened, as sockets do. The stream of a
// name of another principal, or of one that no gateway gave, is refused.
func TestAStreamOfASessionWithoutEvents(t *testing.T) {
	t.Parallel()
	r := start(t, authenticated(key("alice", "acme"), key("bob", "acme")))
	status, body := r.post("/api/v1/sessions", `{}`, bearer("alice")...)
	require.Equal(t, http.StatusCreated, status, body)
	var name struct {
		SessionID string `json:"session_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &name))
	tenant, err := id.ParseTenant("acme")
	require.NoError(t, err)
	l := subject.Log{Tenant: tenant, Kind: id.KindSession, Entity: id.EntityFromExternal(name.SessionID)}
	s := r.reads(streamOf(l), bearer("alice")...)
	status, body, _ = r.get(streamOf(l), bearer("bob")...)
	require.Equal(t, http.StatusNotFound, status, body)
	status, body, _ = r.get(streamOf(l)+"?after=1", bearer("alice")...)
	require.Equal(t, http.StatusUnprocessableEntity, status, body)
	status, body, _ = r.get("/api/v1/sessions/"+unique()+"/stream", bearer("alice")...)
	require.Equal(t, http.StatusNotFound, status, body)
	require.NoError(t, r.append(l, unique(), event.SessionCreatedData{Dialect: "api", Principal: "alice"}))
	m := s.must()
	require.Equal(t, []string{"1", "session.created"}, []string{m.id, m.event})
}
