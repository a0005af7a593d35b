package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
)

// TestEveryMessageOfASwarmHasItsTest: the list of messages and tests is complete, names
// tests that exist, and equals the page of the documentation. Each test checks that it
// shows its messages.
func TestEveryMessageOfASwarmHasItsTest(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	files, err := filepath.Glob("asp_*_test.go")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	shownBy := proof.SwarmProof()
	for _, m := range proof.SwarmMessages() {
		require.True(t, tests[shownBy[m.String()]], "%s has no test, or %q is none", m, shownBy[m.String()])
	}
	require.Len(t, shownBy, len(proof.SwarmMessages()), "no message is twice in the list")
	page, err := os.ReadFile("../docs/generated/asp-messages.md")
	require.NoError(t, err)
	require.Equal(t, proof.SwarmPage(), string(page), "run make generate")
}

// TestClientsOfASwarm: what clients ask the swarm for, and each other.
func TestClientsOfASwarm(t *testing.T) {
	t.Parallel()
	p := one.forTenant(t)
	h := p.swarm()
	p.file("a.txt", "hi")
	c, d := h.client(), h.client()
	mine := c.Get("client.register.response", "client.register", object{"clientName": "Web Dashboard", "clientType": "web"})
	clientsTalk(t, c, d, mine.Text("clientId"))

	servers := c.Get("client.mcp.server.list.response", "client.mcp.server.list.request", object{"filters": object{
		"type": "filesystem", "status": "active", "capabilities": []string{"read", "write"},
	}})
	require.Contains(t, string(servers.Content), `"id":"workspace"`)
	tools := c.Get("mcp.server.tools", "mcp.server.tools", object{"serverId": "workspace"})
	require.Contains(t, string(tools.Content), "read_file")
	run := c.Get("mcp.task.execution", "mcp.tool.execute", object{"serverId": "workspace", "toolName": "read_file", "parameters": object{"path": "a.txt"}})
	require.Equal(t, "success", run.Text("status"))
	require.Contains(t, string(run.Content), "hi")
	c.Get("pong", "ping", object{})
	require.NoError(t, c.Send(object{"id": "alive", "type": "pong"}))
	wrong := c.Ask("client.agent.task.status.request", object{"taskId": "none"})
	require.Equal(t, []string{"error", "TASK_NOT_FOUND"}, []string{wrong.Type, wrong.Text("code")})
	clientsCancel(t, h, c)
}

// clientsTalk has two clients find each other and one write to the other.
func clientsTalk(t *testing.T, c, d *client.Swarm, mine string) {
	t.Helper()
	process.Eventually(t, "the client is listed", func() bool {
		list := d.Get("client.list.response", "client.list", object{"filters": object{"clientType": "web"}})
		return strings.Contains(string(list.Content), "Web Dashboard") && strings.Contains(string(list.Content), mine)
	})
	d.Get("message.sent", "client.message", object{"targetClientId": mine, "messageType": "notification", "data": object{"title": "Hello"}})
	got := c.Until("client.message")
	require.JSONEq(t, `{"title":"Hello"}`, string(got.Member("data")))
	require.Positive(t, got.Seq)
}

// clientsCancel has a client look at a task, by both names, stop it, and hear of
// another's failure.
func clientsCancel(t *testing.T, h swarmRig, c *client.Swarm) {
	t.Helper()
	a := h.agent("agent-1", "Sleeper", nil)
	c.Say("client.agent.task.create.request", object{"agentId": "agent-1", "taskData": object{}})
	task := a.Until("task.execute").Text("taskId")
	a.Say("task.status", object{"taskId": task, "status": "running", "progress": object{"percentage": 75}})
	c.Find("progress", func(f client.SwarmFrame) bool {
		return f.Type == "task.notification" && len(f.Member("data")) > 0 && regexp.MustCompile(`"percentage":75`).Match(f.Member("data"))
	})
	for _, kind := range []string{"client.agent.task.status.request", "client.agent.task.status"} {
		at := c.Get("client.agent.task.status.response", kind, object{"taskId": task})
		require.Equal(t, "running", at.Text("status"))
		require.JSONEq(t, `{"percentage":75}`, string(at.Member("progress")))
	}
	stopped := c.Get("client.agent.task.cancel.response", "client.agent.task.cancel.request", object{"taskId": task, "reason": "enough"})
	require.Equal(t, "cancelled", stopped.Text("status"))
	require.Equal(t, task, stopped.Text("taskId"))
	require.Equal(t, task, a.Until("task.cancel").Text("taskId"))
	require.Equal(t, "cancelled", c.Until("client.agent.task.result").Text("status"))
	over := c.Get("client.agent.task.status.response", "client.agent.task.status.request", object{"taskId": task})
	require.Equal(t, "cancelled", over.Text("status"))
	require.Empty(t, over.Member("error"), "the SDK's call rejects an answer that has one")
	require.Contains(t, string(over.Member("result")), "RUN_CANCELLED")
	again := c.Ask("client.agent.task.cancel.request", object{"taskId": task})
	require.Equal(t, "TASK_FINISHED", again.Text("code"), "%s", again.Content)

	id := c.Say("client.agent.task.create.request", object{"agentId": "agent-1", "taskData": object{}})
	bad := a.Until("task.execute").Text("taskId")
	a.Say("task.error", object{"taskId": bad, "error": "Invalid input format", "code": "INVALID_INPUT"})
	failed := c.Find("the failure", func(f client.SwarmFrame) bool { return f.Type == "task.error" })
	require.Equal(t, bad, failed.Text("taskId"))
	end := c.Find("its end", func(f client.SwarmFrame) bool {
		return f.Type == "client.agent.task.result" && f.RequestID == id
	})
	require.Equal(t, []string{"failed", "INVALID_INPUT"}, []string{end.Text("status"), end.Text("code")})
}

// TestAgentsOfASwarm: what agents ask the swarm for, by all names of it.
func TestAgentsOfASwarm(t *testing.T) {
	t.Parallel()
	h := one.forTenant(t).swarm()
	a, b, c := h.agent("agent-1", "Asker", nil), h.agent("agent-2", "Helper", nil), h.client()
	h.service("math", "Math", addsUp, adder)
	agentsLook(t, a)
	agentsHelpEachOther(t, a, b, c)

	wrong := a.Ask("agent.request", object{"targetAgent": "Nobody", "taskData": object{}})
	require.Equal(t, []string{"error", "AGENT_NOT_FOUND", "No agent found with name 'Nobody'"},
		[]string{wrong.Type, wrong.Text("code"), wrong.Text("details")})
	agentsAskApart(t, a, b)
	for _, kind := range []string{"agent.status", "agent.status.update"} {
		now := a.Get("agent.status.updated", kind, object{"status": "busy"})
		require.Equal(t, "busy", now.Text("status"))
	}
	agentIsCancelled(t, b, c)
	a.Get("pong", "ping", object{})
	a.Get("agent.unregistered", "agent.unregister", object{})
	gone := a.Ask("service.task.execute", object{"serviceId": "math", "toolId": "add", "params": object{"a": 1, "b": 2}})
	require.Equal(t, "NOT_REGISTERED", gone.Text("code"))
	process.Eventually(t, "a ping was answered", b.Pinged)
}

// agentsLook has an agent ask for all lists, and call tools outside of any task.
func agentsLook(t *testing.T, a *client.Swarm) {
	t.Helper()
	for kind, answer := range map[string]string{
		"agent.agent.list.request": "agent.agent.list.response", "agent.list.request": "agent.list.response",
	} {
		require.Contains(t, string(a.Get(answer, kind, object{}).Content), `"name":"Helper"`)
	}
	for kind, answer := range map[string]string{
		"agent.mcp.servers.list": "agent.mcp.servers.list.result", "mcp.servers.list.request": "mcp.servers.list",
	} {
		require.Contains(t, string(a.Get(answer, kind, object{}).Content), `"id":"workspace"`)
	}
	for _, kind := range []string{"mcp.tools.list", "mcp.tools.list.request"} {
		require.Contains(t, string(a.Get("mcp.tools.list.result", kind, object{"serverId": "workspace"}).Content), "list_files")
	}
	require.Contains(t, string(a.Get("agent.service.list.response", "agent.service.list.request", object{}).Content), `"id":"math"`)
	require.Contains(t, string(a.Get("service.tools.list.response", "service.tools.list", object{"serviceId": "math"}).Content), `"id":"add"`)
	for _, kind := range []string{"mcp.tool.execute", "mcp.tool.execute.request"} {
		f := a.Get("mcp.tool.execute.result", kind, object{"serverId": "workspace", "toolName": "list_files", "parameters": object{}})
		require.Equal(t, "success", f.Text("status"))
	}
	sum := a.Get("service.task.execute.response", "service.request", object{"service": "math", "operation": "add", "params": object{"a": 1, "b": 2}})
	require.JSONEq(t, `{"sum":3}`, string(sum.Member("result")))
}

// agentsHelpEachOther has the first agent give the task of a client on, and the second
// answer in the described form; and each other form of an agent's words about a task.
func agentsHelpEachOther(t *testing.T, a, b, c *client.Swarm) {
	t.Helper()
	c.Say("client.agent.task.create.request", object{"agentName": "Asker", "taskData": object{"n": 1}})
	task := a.Until("task.execute").Text("taskId")
	a.Get("task.message.received", "task.message", object{"taskId": task, "message": object{"type": "progress", "message": "half"}})
	a.Say("agent.task.request", object{"targetAgentName": "Helper", "taskData": object{"x": 1}})
	child := b.Until("task.execute")
	require.NoError(t, b.Send(object{"type": "agent.response", "requestId": child.ID, "content": object{"data": object{"x": 2}}}))
	back := a.Until("childagent.response")
	require.Empty(t, back.RequestID)
	require.JSONEq(t, `{"x":2}`, string(back.Member("result")))
	require.NoError(t, a.Send(object{"type": "task.result", "content": object{"taskId": task, "result": "done"}}))
	require.JSONEq(t, `"done"`, string(c.Until("client.agent.task.result").Member("result")))
}

// agentsAskApart has an agent without a task give one to another.
func agentsAskApart(t *testing.T, a, b *client.Swarm) {
	t.Helper()
	id := a.Say("agent.request", object{"targetAgent": "Helper", "taskData": object{"type": "generic", "x": 1}})
	child := b.Until("task.execute")
	accepted := a.Until("childagent.request.accepted")
	require.Equal(t, []string{"", id, child.ID, ""}, []string{accepted.RequestID, accepted.Text("inReplyTo"), accepted.Text("childTaskId"), accepted.Text("parentTaskId")})
	b.Say("agent.task.result", object{"taskId": child.ID, "result": object{"x": 2}})
	end := a.Until("childagent.response")
	require.Empty(t, end.RequestID)
	require.JSONEq(t, `{"x":2}`, string(end.Member("result")))
}

// agentIsCancelled has a client stop the task of an agent, which fails another.
func agentIsCancelled(t *testing.T, b, c *client.Swarm) {
	t.Helper()
	c.Say("client.agent.task.create.request", object{"agentName": "Helper", "taskData": object{}})
	task := b.Until("task.execute").Text("taskId")
	c.Get("client.agent.task.cancel.response", "client.agent.task.cancel.request", object{"taskId": task})
	require.Equal(t, task, b.Until("task.cancel").Text("taskId"))
	c.Until("client.agent.task.result")
	c.Say("client.agent.task.create.request", object{"agentName": "Helper", "taskData": object{}})
	task = b.Until("task.execute").Text("taskId")
	b.Say("task.error", object{"taskId": task, "error": "no"})
	c.Until("task.error")
	require.Equal(t, "failed", c.Until("client.agent.task.result").Text("status"))
}

// addsUp is a service that adds.
func addsUp(s *client.Swarm, f client.SwarmFrame) {
	if f.Type != "service.task.execute" {
		return
	}
	var in struct{ A, B float64 }
	if err := decodeMember(f, "params", &in); err == nil {
		_, _ = s.Tell("service.task.result", object{"taskId": f.ID, "result": object{"sum": in.A + in.B}}) // a lost answer fails the call
	}
}

// TestServicesOfASwarm: what services say.
func TestServicesOfASwarm(t *testing.T) {
	t.Parallel()
	h := one.forTenant(t).swarm()
	s := h.service("math", "Math", nil, adder)
	a, c := h.agent("agent-1", "Asker", nil), h.client()
	mine := c.Get("client.register.response", "client.register", object{"clientName": "Listener"}).Text("clientId")

	call := a.Say("service.task.execute", object{"serviceId": "math", "toolId": "add", "params": object{"a": 1, "b": 2}})
	run := s.Until("service.task.execute")
	require.Equal(t, "add", run.Text("toolId"))
	s.Get("notification.received", "service.task.notification", object{
		"taskId": run.ID, "notification": object{"type": "progress", "message": "adding", "data": object{"step": 1}},
	})
	s.Say("service.error", object{"taskId": run.ID, "error": "API rate limit exceeded", "code": "RATE_LIMIT_EXCEEDED", "stack": "secret"})
	failed := a.Find("the failure", func(f client.SwarmFrame) bool { return f.RequestID == call })
	require.Equal(t, "TOOL_FAILED", failed.Text("code"), "%s", failed.Content)
	require.JSONEq(t, `{"code":"RATE_LIMIT_EXCEEDED"}`, string(failed.Member("details")))
	require.NotContains(t, string(failed.Content), "secret")

	s.Get("notification.received", "service.notification", object{
		"notification": object{"type": "info", "message": "updated"}, "metadata": object{"clientId": mine},
	})
	require.Equal(t, "service.notification", c.Until("client.message").Text("messageType"))
	s.Unanswered("service.notification", object{"notification": object{"type": "info"}, "metadata": object{"clientId": "nobody"}})
	s.Get("service.status.updated", "service.status", object{"status": "maintenance"})
	s.Get("pong", "ping", object{})
	s.Get("service.unregistered", "service.unregister", object{})
	s.Unanswered("service.task.result", object{"taskId": run.ID, "result": object{"sum": 3}})
	require.NoError(t, s.Raw(`{"id":"odd","type":"service.nonsense"}`))
	odd := s.Find("what no SDK sends is answered", func(f client.SwarmFrame) bool { return f.Type == "error" })
	require.Equal(t, []string{"odd", "UNKNOWN_MESSAGE_TYPE"}, []string{odd.RequestID, odd.Text("code")})
	process.Eventually(t, "a ping was answered", s.Pinged)
}
