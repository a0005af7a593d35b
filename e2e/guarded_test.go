package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// TestEveryRoleUnderItsOwnUser: everything that clients can do, with a process for each
// role, each with no more rights on the bus than the role's list. The server refuses
// nothing.
func TestEveryRoleUnderItsOwnUser(t *testing.T) {
	g := startGuarded(t, "server.conf",
		// High enough for all clients: the counting of quotas is under the list, too.
		"WAGGLE_QUOTA_TENANT_CONNECTIONS=1000", "WAGGLE_QUOTA_TENANT_SESSIONS=1000", "WAGGLE_QUOTA_TENANT_TASKS=1000",
		"WAGGLE_QUOTA_TENANT_TEAMS=1000", "WAGGLE_QUOTA_TENANT_TOKENS=1000000000")
	require.Contains(t, g.run(permission.Bootstrap, "bootstrap"), "the streams are as the configuration has them")
	monitor, refused := g.dial(permission.Monitor)
	heard, err := monitor.SubscribeSync(subject.LiveEverything)
	require.NoError(t, err)
	addr := g.serve()
	g.t = t
	t.Run("chat", func(t *testing.T) { askAndCheck(t, addr) })
	t.Run("swarm", func(t *testing.T) { guardedSwarm(t, g.dir, addr) })
	t.Run("assistant", func(t *testing.T) {
		c := swarmRig{t: t, addr: addr}.client()
		give(t, c, object{"agentName": "assistant", "taskData": object{"question": question}})
		require.Contains(t, string(c.Until("client.agent.task.result").Member("result")), "Welcome to your workspace")
		large := give(t, c, object{"agentName": "assistant", "taskData": object{"question": question, "more": longText("x", 300<<10)}})
		for {
			if end := c.Until("client.agent.task.result"); end.Text("taskId") == large {
				require.Equal(t, "completed", end.Text("status"), "%.300s", end.Content)
				break
			}
		}
	})
	t.Run("questions of agents", func(t *testing.T) { guardedQuestions(t, addr) })
	t.Run("team", func(t *testing.T) { guardedTeam(t, g, addr) })
	t.Run("delete", func(t *testing.T) { guardedDelete(t, g, addr) })
	t.Run("letters", func(t *testing.T) { guardedLetters(t, g, addr) })
	t.Run("checkup", func(t *testing.T) { guardedCheckup(t, addr) })
	t.Run("rates", func(t *testing.T) { guardedRates(t, g, addr) })
	t.Run("operator", func(t *testing.T) { guardedOperator(t, g, addr) })
	require.Empty(t, g.log.all(), "the server refused something")
	require.Empty(t, refused)
	n, _, err := heard.Pending()
	require.NoError(t, err)
	require.Greater(t, n, 100, "the monitor heard what happened")
	t.Logf("%d announcements, nothing refused", n)
}

// guardedQuestions has an agent of the swarm ask in a session, and as a member of a team.
func guardedQuestions(t *testing.T, addr string) {
	p := place{t: t, addr: addr}
	painter(t, p, swarm.Question{Message: "Which colour?", Timeout: time.Hour})
	answer := func(base string, change func(map[string]any)) {
		t.Helper()
		thread := newRun()
		open := interrupts(t, p.agui().runAt(base, thread, newRun(), "paint", change))
		frames := p.agui().runAt(base, thread, newRun(), "", resumes(open[0].ID, "red"))
		require.Contains(t, strings.Join(datas(frames), "\n"), `painted \"red\"`)
	}
	answer(askingBase, nil)
	text := post(t, p.url("/api/v1/teams"), "", `{"name":"office","coordinator":"Boss","members":[{"name":"Boss"},{"name":"Artist","agent":"Painter"}]}`)
	var v command.TeamView
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(text, "201 ")), &v), text)
	answer("/teams/"+v.TeamID, func(in map[string]any) { in["forwardedProps"] = object{"waggle": object{"targetMember": "Artist"}} })
}

// guardedSwarm lets all participants of a swarm talk to each other.
func guardedSwarm(t *testing.T, dir, addr string) {
	require.NoError(t, os.WriteFile(filepath.Join(dir, "workspace", "a.txt"), []byte("hi there"), 0o600))
	h := swarmRig{t: t, addr: addr}
	service := h.service("llm-service-001", "LLM Service", nil, object{
		"id": "generate_text", "name": "Text Generation",
		"inputSchema":  object{"type": "object", "required": []string{"prompt"}, "properties": object{"prompt": object{"type": "string"}}},
		"outputSchema": object{"type": "object", "required": []string{"text"}, "properties": object{"text": object{"type": "string"}}},
	})
	writer := h.agent("agent-001", "Text Processing Agent", nil, "text-processing")
	analyst := h.agent("agent-002", "Data Analysis Agent", nil, "analysis")
	c, d := h.client(), h.client()
	mine := c.Get("client.register.response", "client.register", object{"clientName": "Web Dashboard", "clientType": "web"})
	clientsTalk(t, c, d, mine.Text("clientId"))
	run := c.Get("mcp.task.execution", "mcp.tool.execute", object{"serverId": "workspace", "toolName": "read_file", "parameters": object{"path": "a.txt"}})
	require.Contains(t, string(run.Content), "hi there")
	play := wholeTask{t: t, client: c, writer: writer, analyst: analyst, service: service}
	play.begin()
	play.callService()
	answer := writer.Get("mcp.tool.execute.result", "mcp.tool.execute", object{
		"serverId": "workspace", "toolName": "read_file", "parameters": object{"path": "a.txt"}, "taskId": play.task,
	})
	require.Contains(t, string(answer.Member("result")), "hi there")
	play.askClient()
	play.askAgent()
	play.end()
	large := largeTask{t: t, client: c, agent: writer, service: service}
	large.begin("agent-001", 300<<10)
	large.callService(800<<10, 400<<10)
	large.end(900 << 10)
	clientsCancel(t, h, c)
}

// guardedTeam has a team with a nested one work, ask for a tool and act on its board.
func guardedTeam(t *testing.T, g *guarded, addr string) {
	g.t = t
	example, err := filepath.Abs(filepath.Join("..", "cmd", "waggle", "project", "templates", "research-team", "team.yaml"))
	require.NoError(t, err)
	url := "ws://" + addr + "/ws"
	out := g.run(permission.Monitor, "teams", "run", "-f", example, "ask Analyst which files are in the workspace, and ask library to ask Reader how many words notes.md has", "--yes", "--url", url)
	require.Contains(t, out, "library/Reader may run workspace_read_file")
	require.Contains(t, out, "library answers")
	require.Contains(t, g.run(permission.Monitor, "teams", "list", "--url", url), "IDLE")
	guardedFile(t, addr)
}

// guardedFile has a member write a file, which is fetched from its log.
func guardedFile(t *testing.T, addr string) {
	found := post(t, "http://"+addr+"/api/v1/teams", "", `{"name":"writers","coordinator":"Ann","members":[{"name":"Ann","tools":["workspace/*"],"auto_execute_tools":true}]}`)
	var team struct {
		TeamID string `json:"team_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(found[strings.Index(found, "{"):]), &team), found)
	files := artifacts(t, aguiClient{t: t, addr: addr}.runAt("/teams/"+team.TeamID, "t", newRun(), "write crimson to paper.txt", nil))
	require.Len(t, files, 1)
	got := fetch(t, http.MethodGet, addr, files[0].URL, "")
	require.Equal(t, "crimson\n", got.body, "%v", got)
}

// guardedOperator looks at everything, as people who operate an installation do.
func guardedOperator(t *testing.T, g *guarded, addr string) {
	session := strings.Fields(strings.Split(strings.TrimSpace(g.run(permission.Operator, "sessions", "list", "--url", "ws://"+addr+"/ws")), "\n")[1])[0]
	require.Contains(t, g.run(permission.Operator, "tail", "session/"+session, "--no-follow"), "session")
	out := g.run(permission.Operator, "doctor", "--addr", addr)
	require.Contains(t, out, "as this version needs them")
	require.NotContains(t, out, "not running:")
}

// guardedCheckup has the gateway examine the installation, as its own user of NATS.
func guardedCheckup(t *testing.T, addr string) {
	text := over(t, http.MethodGet, "http://"+addr+"/api/v1/installation", "")
	for _, want := range []string{
		`"what":"streams","is":"as this version needs them"`, `"what":"replicas","is":"one copy of each stream"`, `"what":"queues","is":"waiting: `,
		`"up_to_date":true`, `"role":"worker"`, `"role":"gateway"`,
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "not running:")
}

// guardedRates has the gateway ask all processes for what they have counted, and one of them stands still.
func guardedRates(t *testing.T, g *guarded, addr string) {
	read := func() (l api.RateList) {
		text := over(t, http.MethodGet, "http://"+addr+"/api/v1/rates", "")
		require.NoError(t, json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &l), text)
		return l
	}
	rolesOf := func(list []api.RateProcess) (roles []string) {
		for _, p := range list {
			roles = append(roles, p.Roles...)
		}
		return roles
	}
	process.Eventually(t, "all processes have told what they counted", func() bool {
		l := read()
		var measured []string
		for _, r := range l.Rates {
			if r.P99 > 0 {
				measured = append(measured, r.Name)
			}
		}
		return slices.Equal(measured, []string{"events", "deliveries", "commands", "tools", "models"}) && len(l.Missing) == 0
	})
	require.ElementsMatch(t, config.Roles, rolesOf(read().Processes))
	g.running[config.RoleTools].Signal(syscall.SIGSTOP)
	defer g.running[config.RoleTools].Signal(syscall.SIGCONT)
	process.Eventually(t, "the process that stands still is named", func() bool {
		l := read()
		return slices.Equal(rolesOf(l.Missing), []string{config.RoleTools}) && len(l.Processes) == len(config.Roles)-1
	})
}

// guardedDelete has a session deleted: the role session may remove what is left of it.
func guardedDelete(t *testing.T, g *guarded, addr string) {
	m := client.DialMyAgent(t, addr)
	m.Create("en_US", nil)
	m.Message("what is in my workspace?", nil)
	m.Until(myagent.AgentFinalAnswer)
	m.Send(myagent.UserAck, map[string]any{"metadata": map[string]any{"last_seq": m.Seq(), "client_id": "browser_1"}})
	require.Equal(t, http.StatusNoContent, remove(t, addr, m.Session))
	peek(t, m, "the end", wasDeleted)
	operator, _ := g.dial(permission.Operator)
	require.Equal(t, []string{string(event.SessionDeleted)}, storedOf(t, operator, m.Session))
	process.Eventually(t, "the deletion is in the audit log", func() bool {
		return strings.Contains(g.run(permission.Operator, "audit", "--action", "deletion"), m.Session)
	})
}
