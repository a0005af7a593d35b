package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/session"
)

const patience = 60 * time.Second

var log = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("s1")}

type rig struct {
	t    *testing.T
	ctx  context.Context
	conn *bus.Conn
	log  *eventlog.Store
	dir  *directory.Directory
	send *command.Sender
}

func newRig(t *testing.T) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	r := &rig{t: t, ctx: ctx, conn: bustest.Single(t)}
	var err error
	r.log, err = eventlog.New(r.conn, eventlog.Options{Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(r.log.Close)
	r.dir, err = directory.Open(ctx, r.conn)
	require.NoError(t, err)
	t.Cleanup(r.dir.Close)
	r.send = command.NewSender(r.conn)
	return r
}

func (r *rig) service(name string, ttl time.Duration) *session.Service {
	r.t.Helper()
	s, err := session.New(session.Config{TTL: ttl}, session.Deps{
		Conn: r.conn, Log: r.log, Commands: r.send, Directory: r.dir, Instance: id.MustName(name), Logger: zerolog.Nop(),
	})
	require.NoError(r.t, err)
	return s
}

func (r *rig) start(name string, ttl time.Duration) *session.Service {
	r.t.Helper()
	s := r.service(name, ttl)
	require.NoError(r.t, s.Start(r.ctx))
	r.t.Cleanup(s.Stop)
	return s
}

func (r *rig) command(l subject.Log, verb id.Name, commandID string, data any) {
	r.t.Helper()
	raw, err := json.Marshal(data)
	require.NoError(r.t, err)
	require.NoError(r.t, r.send.Send(r.ctx, cmd.Command{
		ID: commandID, Service: cmd.Session, Verb: verb, Tenant: l.Tenant, Key: l.Entity, Time: time.Now(), Data: raw,
	}))
}

// until reads the log until an event of the type is there.
func (r *rig) until(l subject.Log, typ event.Type) []event.Event {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, patience)
	defer cancel()
	var out []event.Event
	for e, err := range r.log.Tail(ctx, l, eventlog.Cursor{}) {
		require.NoError(r.t, err)
		out = append(out, e.Event)
		if e.Type == typ {
			return out
		}
	}
	return out
}

func TestAnIdleSessionExpires(t *testing.T) {
	r := newRig(t)
	r.start("a", time.Second)
	r.command(log, cmd.Open, "open", cmd.OpenSession{Dialect: "orbit"})
	events := r.until(log, event.SessionClosed)
	d, err := event.As[event.SessionClosedData](events[len(events)-1])
	require.NoError(t, err)
	require.Equal(t, "timeout", d.Reason)
	require.GreaterOrEqual(t, events[1].Time.Sub(events[0].Time), time.Second)
	r.command(log, cmd.Message, "late", cmd.UserMessage{Content: "hello?"})
	require.Len(t, r.until(log, event.MessageRefused), 3)
}

func TestCommandsForNobodyAreGivenUp(t *testing.T) {
	r := newRig(t)
	r.start("a", 0)
	other := subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal("nobody")}
	r.command(other, cmd.Message, "m1", cmd.UserMessage{Content: "hello?"})
	require.Eventually(t, func() bool {
		s, err := r.conn.JS().Stream(r.ctx, subject.StreamDead)
		return err == nil && s.CachedInfo().State.Msgs == 1
	}, patience, 20*time.Millisecond)
	last, err := r.log.Last(r.ctx, other)
	require.NoError(t, err)
	require.Zero(t, last.Seq, "no log is begun for a session that does not exist")
}

// TestTwoReplicasShareTheSessions: many sessions over two replicas, one of which
// stops in the middle; each message is taken once and in order.
func TestTwoReplicasShareTheSessions(t *testing.T) {
	const sessions, messages = 12, 8
	r := newRig(t)
	leaving := r.start("a", 0)
	r.start("b", 0)
	logs := make([]subject.Log, sessions)
	for i := range logs {
		logs[i] = subject.Log{Tenant: id.DefaultTenant, Kind: id.KindSession, Entity: id.EntityFromExternal(fmt.Sprint("s", i))}
		r.command(logs[i], cmd.Open, "open", cmd.OpenSession{Dialect: "orbit"})
	}
	for n := range messages {
		for _, l := range logs {
			r.command(l, cmd.Message, fmt.Sprint("m", n), cmd.UserMessage{Content: fmt.Sprint(n)})
		}
		if n == messages/2 {
			leaving.Stop()
		}
	}
	for _, l := range logs {
		r.command(l, cmd.Close, "close", cmd.CloseSession{})
		next := 0
		for _, e := range r.until(l, event.SessionClosed) {
			if e.Type != event.MessageReceived {
				continue
			}
			d, err := event.As[event.MessageReceivedData](e)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(next), d.Content, "in order, once")
			next++
		}
		require.Equal(t, messages, next)
	}
}

func TestServiceIsAComponent(t *testing.T) {
	r := newRig(t)
	n := 0
	lifecycletest.Exercise(t, func() lifecycle.Component {
		n++
		return r.service(fmt.Sprint("c", n), 0)
	})
}

func TestAPI(t *testing.T) {
	r := newRig(t)
	r.start("a", 0)
	keys := map[string]string{"alice": "key-of-alice", "eve": "key-of-eve"}
	a, err := auth.New(r.ctx, auth.Config{APIKeys: []auth.APIKey{
		{ID: "1", SHA256: auth.HashKey(keys["alice"]), Subject: "alice", Tenant: "default", Roles: []auth.Role{auth.RoleUser}},
		{ID: "2", SHA256: auth.HashKey(keys["eve"]), Subject: "eve", Tenant: "other", Roles: []auth.Role{auth.RoleUser}},
	}})
	require.NoError(t, err)
	mux := http.NewServeMux()
	session.NewAPI(r.log, r.send, a, zerolog.Nop()).Mount(mux)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	ask := func(who, method, path string) (int, string) {
		req, err := http.NewRequestWithContext(r.ctx, method, web.URL+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+keys[who])
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b)
	}
	r.command(log, cmd.Open, "open", cmd.OpenSession{Dialect: "orbit"})
	r.command(log, cmd.Message, "m1", cmd.UserMessage{Content: "hello"})
	r.until(log, event.RunStarted)

	status, body := ask("alice", "GET", "/api/v1/sessions")
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"session_id":"s1","last_seq":3`)
	status, body = ask("alice", "GET", "/api/v1/sessions/s1")
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"status":"running"`)
	status, body = ask("alice", "GET", "/api/v1/sessions/s1/events?after=1&limit=1")
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
	status, body = ask("alice", "GET", "/api/v1/sessions/s1/events?after="+page.Next)
	require.Equal(t, 200, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &page))
	require.EqualValues(t, 3, page.Events[0].Sequence)
	require.False(t, page.More)

	for _, path := range []string{"/events?after=x", "/events?after=99", "/events?limit=0", "/events?limit=1001"} {
		status, body = ask("alice", "GET", "/api/v1/sessions/s1"+path)
		require.Equal(t, 422, status, path+body)
	}
	// A session of another tenant is answered exactly like one that does not exist.
	for _, path := range []string{"GET /%s", "GET /%s/events", "POST /%s/cancel"} {
		method, path, _ := strings.Cut(path, " ")
		is, foreign := ask("eve", method, "/api/v1/sessions"+fmt.Sprintf(path, "s1"))
		none, missing := ask("eve", method, "/api/v1/sessions"+fmt.Sprintf(path, "nope"))
		require.Equal(t, 404, is)
		require.Equal(t, none, is)
		require.Equal(t, missing, foreign)
	}
	_, body = ask("eve", "GET", "/api/v1/sessions")
	require.JSONEq(t, `{"sessions":[]}`, body)
	status, _ = ask("mallory", "GET", "/api/v1/sessions")
	require.Equal(t, 401, status)
	for _, bad := range []string{"*", "%3E", "a.b", "%00", strings.Repeat("x", 10_000)} {
		status, _ = ask("alice", "GET", "/api/v1/sessions/"+bad)
		require.Contains(t, []int{404, 400}, status, bad)
	}

	status, _ = ask("alice", "POST", "/api/v1/sessions/s1/cancel")
	require.Equal(t, 200, status)
	r.until(log, event.RunCancelled)
}
