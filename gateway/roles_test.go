package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// everybody has one key for each role, named like it, of one tenant.
func everybody() option {
	return authenticated(
		key("user", "red", auth.RoleUser), key("operator", "red", auth.RoleOperator), key("viewer", "red", auth.RoleViewer),
		key("agent", "red", auth.RoleAgent), key("service", "red", auth.RoleService), key("both", "red", auth.RoleViewer, auth.RoleUser),
	)
}

// Who may open which socket.
func TestRolesOpenSockets(t *testing.T) {
	s := pavilion(t, everybody())
	people := []string{"user", "operator", "viewer", "both"}
	for path, may := range map[string][]string{
		pathSessions: people, pathClient: people, pathAgent: {"user", "operator", "both", "agent"},
		pathService: {"user", "operator", "both", "service"},
		pathRuns:    people, pathTeams + "x": people, pathMembers + "x": people,
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

// A viewer sees everything of its tenant, and nothing that it asks for is done: on
// sockets of every manner.
func TestViewersChangeNothing(t *testing.T) {
	t.Parallel()
	s := pavilion(t, everybody())
	header := bearer("viewer")
	for _, kind := range kinds {
		l := s.runLog(kind, "red")
		s.answers(l, "seen")
		for _, w := range windows(t) {
			c := s.open(w.path, "watch="+string(kind)+"/"+l.Entity.String(), header...)
			w.see(c, l, "seen")
			switch w.path {
			case pathSolo, pathRuns:
				for _, ask := range []string{"say", "approve", "stop"} {
					c.commands(ask, "", "x")
					require.Equal(t, string(fault.Forbidden), c.crewSaid("failed").Code)
				}
			case pathSessions:
				for _, ask := range []string{"act", "open", "import"} {
					c.ask(asked{Ask: ask, Session: l.Entity.String(), Text: "x", Signed: []byte(`"x"`)})
					require.Equal(t, string(fault.Forbidden), c.said("refused").Code)
				}
				c.ask(asked{Ask: "ack", Session: l.Entity.String(), After: ptr(uint64(2)), Client: "somebody's phone"})
				c.ask(asked{Ask: "resume", Session: l.Entity.String(), After: ptr(uint64(1))})
				c.sees(l, 2, 2)
				c.said("replayed")
			case pathClient:
				for _, ask := range []string{"client.agent.task.create.request", "client.agent.task.cancel.request", "task.message", "client.register", "client.message", "mcp.tool.execute"} {
					c.says(ask, ask, map[string]any{
						"taskId": l.Entity.String(), "taskData": 1, "agentName": "x", "message": "x", "name": "x",
						"targetClientId": "x", "serverId": "x", "toolName": "x", "parameters": map[string]any{},
					})
					require.Contains(t, c.until(`"requestId":"`+ask+`"`), fault.Forbidden)
				}
				c.says("client.agent.list.request", "li", map[string]any{})
				c.until(`"client.agent.list.response"`)
			}
			c.leave()
		}
		require.Empty(t, s.inbox(l.Entity.String()), kind)
	}
	l := s.runLog(id.KindTeam, "red")
	c := s.open(pathTeams+l.Entity.String(), "", header...)
	c.welcomed(l.Entity.String())
	c.crewSaid("member")
	c.crewSaid("event")
	c.commands("pause", "", "")
	require.Equal(t, string(fault.Forbidden), c.crewSaid("failed").Code)
	c.leave()
	// A socket without a session would begin one.
	s.open(pathSolo, "", header...).turnedAway(fault.Forbidden, 4403)
	mine := s.session("red", "seen")
	c = s.open(pathSolo, "session="+mine.Entity.String()+"&after=0", header...)
	c.crewSaid("greeting")
	c.crewSaid("greeting")
	c.sees(mine, 1, 2)
	c.leave()
	// Who has another role beside it may do what that one may.
	c = s.open(pathTeams+l.Entity.String(), "", bearer("both")...)
	c.welcomed(l.Entity.String())
	c.commands("pause", "", "")
	require.Equal(t, "who-both", s.nextCommand(l.Entity.String()).Principal)
}

// A key of an agent is good for an agent's socket, and what an agent does there is done.
func TestKeysOfAgents(t *testing.T) {
	s := pavilion(t, everybody())
	agent := unique()
	c := s.agent(agent, "Reader", bearer("agent")...)
	task := unique()
	c.says("agent.task.result", "", map[string]any{"taskId": task, "result": 1})
	require.Equal(t, "who-agent", s.nextCommand(task).Principal)
	c.leave()
	v := s.service(unique(), bearer("service")...)
	v.leave()
}
