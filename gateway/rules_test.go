package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const atNight = "Nothing is done between 0 and 6 h."

// awake is a rule of authority as an installation may add one: in one function, for every protocol.
func awake(clock func() time.Time) edge.Rule {
	return func(context.Context, *edge.Client, *edge.Act) error {
		if clock().Hour() < 6 {
			return fault.Newf(fault.Forbidden, "%s", atNight)
		}
		return nil
	}
}

// speechless refuses messages, and nothing else.
func speechless(on *atomic.Bool) edge.Rule {
	return func(_ context.Context, _ *edge.Client, a *edge.Act) error {
		if on.Load() && a.Service == command.Pipeline && a.Verb == command.SendMessage {
			return fault.Newf(fault.Forbidden, "%s", atNight)
		}
		return nil
	}
}

// refusedFirstMessages make no session, although only messages are refused.
func (r *rig) refusedFirstMessages(on *atomic.Bool) {
	r.t.Helper()
	on.Store(true)
	defer on.Store(false)
	before := r.opened()
	as := bearer("ann")
	c := r.open("/ws", "", as...)
	c.write(message("hello"))
	c.until(atNight)
	c.leave()
	status, answer, _ := r.demands("/agui", ask("a new thread", "one"), as...)
	require.Equal(r.t, http.StatusForbidden, status, answer)
	var named struct {
		ID string `json:"session_id"`
	}
	status, answer, _ = r.demands("/api/v1/sessions", `{}`, as...)
	require.Equal(r.t, http.StatusCreated, status, answer)
	require.NoError(r.t, json.Unmarshal([]byte(answer), &named))
	status, answer, _ = r.demands("/api/v1/sessions/"+named.ID+"/messages", `{"content":"hello"}`, as...)
	require.Equal(r.t, http.StatusForbidden, status, answer)
	require.Equal(r.t, before, r.opened(), "a session was made for a message that was refused")
}

// TestARuleHoldsInEveryProtocol: what a rule refuses reaches no service, whichever protocol asks for it, and the client is told why.
func TestARuleHoldsInEveryProtocol(t *testing.T) {
	t.Parallel()
	var hour atomic.Int64
	var quiet atomic.Bool // first messages are refused, and sessions are not
	s := startAll(t, append(everybody, func(_ *gateway.Config, d *gateway.Deps) {
		addRoutes(d, map[string]gateway.Route{
			pathTeams + "{team_id}": gateway.Team(team.Teams()),
			pathSessions:            gateway.Multi(myagent.New(myagent.Settings{ServerVersion: "test", SessionTTL: 24 * time.Hour, Heartbeat: 5 * maxWait})),
		})
		d.Rules = []edge.Rule{speechless(&quiet), awake(func() time.Time { return time.Date(2026, 1, 1, int(hour.Load()), 0, 0, 0, time.UTC) })}
	})...)
	session, hive := s.ownedBy(id.KindSession, "who-ann"), s.ownedBy(id.KindTeam, "who-ann")
	as := bearer("ann")
	say := map[string]func(t *testing.T) *client{
		"ORBIT": func(*testing.T) *client {
			c := s.open("/ws", "session="+session.Entity.String(), as...)
			c.write(message("hello"))
			return c
		},
		"MyAgent": func(*testing.T) *client {
			c := s.open(pathSessions, "", as...)
			c.asks("user.message", session.Entity.String(), `,"content":"hello"`)
			return c
		},
		"ASP": func(*testing.T) *client {
			c, _ := s.join(pathClient, "", as...)
			c.sendASP("client.agent.task.create.request", "f", map[string]any{"agentName": "robot", "taskData": "hello"})
			return c
		},
		"teams": func(*testing.T) *client {
			c := s.open(pathTeams+hive.Entity.String(), "", as...)
			c.write(text(`{"type":"SEND_MESSAGE","payload":{"content":"hello"}}`))
			return c
		},
	}
	for name, dial := range say {
		t.Run(name, func(t *testing.T) {
			c := dial(t)
			c.until(atNight)
			c.leave()
		})
	}
	for path, body := range map[string]string{
		"/agui": ask("a thread", "one"), "/agui/teams/" + hive.Entity.String(): ask("any", "one"),
		"/api/v1/sessions/" + session.Entity.String() + "/messages": `{"content":"hello"}`,
		"/api/v1/sessions/" + session.Entity.String() + "/cancel":   `{}`,
		"/api/v1/teams":                         `{"name":"night shift","members":[{"name":"Coder"}]}`,
		"/api/v1/tasks":                         `{"agent_name":"robot","data":"hello"}`,
		"/api/v1/tools/workspace/list_dir/call": `{"kind":"mcp","arguments":{}}`,
	} {
		t.Run("POST "+path, func(t *testing.T) {
			status, answer, _ := s.demands(path, body, as...)
			require.Equal(t, http.StatusForbidden, status, answer)
			require.Contains(t, answer, atNight)
		})
	}
	require.Empty(t, s.inbox(session.Entity.String()), "the services were sent nothing")
	require.Empty(t, s.inbox(hive.Entity.String()))

	hour.Store(12)
	s.refusedFirstMessages(&quiet)
	c := s.open("/ws", "session="+session.Entity.String(), as...)
	c.write(message("hello"))
	require.Equal(t, "who-ann", s.nextCommand(session.Entity.String()).Principal)
	c.leave()
}
