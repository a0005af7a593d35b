package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// allRoles returns one key for each role, named like it, of one tenant.
func allRoles() option {
	return authenticated(
		key("user", "red", auth.RoleUser), key("operator", "red", auth.RoleOperator), key("viewer", "red", auth.RoleViewer),
		key("agent", "red", auth.RoleAgent), key("service", "red", auth.RoleService), key("both", "red", auth.RoleViewer, auth.RoleUser),
	)
}

// Each role opens its own kinds of sockets.
func TestRolesOpenSockets(t *testing.T) {
	s := startAll(t, allRoles())
	people := []string{"user", "operator", "viewer", "both"}
	for path, may := range map[string][]string{
		pathSessions: people, pathClient: people, pathAgent: {"agent"}, pathService: {"service"},
		pathRuns: people, pathTeams + "x": people, pathMembers + "x": people,
	} {
		for _, who := range []string{"user", "operator", "viewer", "agent", "service", "both"} {
			s.path = path
			want := 403
			for _, m := range may {
				if m == who {
					want = 101
				}
			}
			c, status, body := s.handshake("", bearer(who)...)
			require.Equal(t, want, status, "%s on %s: %s", who, path, body)
			_ = c.Conn.Close()
		}
	}
}

// A viewer sees everything of its tenant, and its commands are refused, on sockets of every
// binding.
func TestViewersChangeNothing(t *testing.T) {
	t.Parallel()
	s := startAll(t, allRoles())
	header := bearer("viewer")
	for _, kind := range kinds {
		l := s.runLog(kind, "red")
		s.answers(l, "seen")
		for _, w := range watchers(t) {
			c := s.open(w.path, "watch="+string(kind)+"/"+l.Entity.String(), header...)
			w.see(c, l, "seen")
			switch w.path {
			case pathSingle, pathRuns:
				for _, ask := range []string{"say", "approve", "stop"} {
					c.sendTeam(ask, "", "x")
					f := c.nextTeamFrame()
					for f.Kind == "status" { // current statuses follow what was replayed
						f = c.nextTeamFrame()
					}
					require.Equal(t, string(fault.Forbidden), f.Code, "%+v", f)
				}
			case pathSessions:
				for _, ask := range []string{"act", "open", "import"} {
					c.ask(multiRequest{Ask: ask, Session: l.Entity.String(), Text: "x", Signed: []byte(`{}`)})
					require.Equal(t, string(fault.Forbidden), c.expectFrame("refused").Code)
				}
				c.ask(multiRequest{Ask: "ack", Session: l.Entity.String(), After: ptr(uint64(2)), Client: "somebody's phone"})
				c.ask(multiRequest{Ask: "resume", Session: l.Entity.String(), After: ptr(uint64(1))})
				c.expectEvents(l, 2, 2)
				c.expectFrame("replayed")
			case pathClient:
				for _, ask := range []string{"client.agent.task.create.request", "client.agent.task.cancel.request", "task.message", "client.register", "client.message", "mcp.tool.execute"} {
					c.sendASP(ask, ask, map[string]any{
						"taskId": l.Entity.String(), "taskData": 1, "agentName": "x", "message": "x", "name": "x",
						"targetClientId": "x", "serverId": "x", "toolName": "x", "parameters": map[string]any{},
					})
					require.Contains(t, c.until(`"requestId":"`+ask+`"`), fault.Forbidden)
				}
				c.sendASP("client.agent.list.request", "li", map[string]any{})
				c.until(`"client.agent.list.response"`)
			}
			c.leave()
		}
		require.Empty(t, s.inbox(l.Entity.String()), kind)
	}
	l := s.runLog(id.KindTeam, "red")
	c := s.open(pathTeams+l.Entity.String(), "", header...)
	c.expectWelcome(l.Entity.String())
	c.expectTeamFrame("event")
	c.expectStatuses(1)
	c.sendTeam("pause", "", "")
	require.Equal(t, string(fault.Forbidden), c.expectTeamFrame("failed").Code)
	c.leave()
	// A socket without a session would begin one.
	s.open(pathSingle, "", header...).expectRefusal(fault.Forbidden, 4403)
	mine := s.session("red", "seen")
	c = s.open(pathSingle, "session="+mine.Entity.String()+"&after=0", header...)
	c.expectTeamFrame("greeting")
	c.expectTeamFrame("greeting")
	c.expectEvents(mine, 1, 2)
	c.leave()
	// A second role adds its rights.
	c = s.open(pathTeams+l.Entity.String(), "", bearer("both")...)
	c.expectWelcome(l.Entity.String())
	c.sendTeam("pause", "", "")
	require.Equal(t, "who-both", s.nextCommand(l.Entity.String()).Principal)
}

// The key of an agent opens the socket of an agent, and commands on that socket take effect.
func TestKeysOfAgents(t *testing.T) {
	s := startAll(t, allRoles())
	agent := unique()
	c := s.agent(agent, "Reader", bearer("agent")...)
	task := unique()
	c.sendASP("agent.task.result", "", map[string]any{"taskId": task, "result": 1})
	require.Equal(t, "who-agent", s.nextCommand(task).Principal)
	c.leave()
	v := s.service(unique(), bearer("service")...)
	v.leave()
}
