package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// Where the participants of a swarm connect.
const (
	clients = "/ws/asp/client"
	agents  = "/ws/asp/agent"
)

// enlist connects an agent.
func enlist(t *testing.T, addr, key, agentID, name string, capabilities ...string) *client.Peer {
	t.Helper()
	a := client.DialPeer(t, addr, agents, key)
	a.Until("orchestrator.welcome")
	a.Say("agent.register", map[string]any{"id": agentID, "name": name, "capabilities": capabilities})
	a.Until("agent.registered")
	return a
}

// visit connects a client.
func visit(t *testing.T, addr, key string) *client.Peer {
	t.Helper()
	c := client.DialPeer(t, addr, clients, key)
	c.Until("orchestrator.client.welcome")
	return c
}

// TestATaskOfASwarm: a client gives a task to an agent and gets its result.
func TestATaskOfASwarm(t *testing.T) {
	_, addr := up(t, nil)
	a := enlist(t, addr, "", "agent-1", "Adder", "math")
	c := visit(t, addr, "")
	c.Say("client.agent.task.create.request", map[string]any{"agentName": "Adder", "taskType": "add", "taskData": map[string]any{"a": 1, "b": 2}})
	task := a.Until("task.execute")
	require.JSONEq(t, `{"a":1,"b":2}`, string(task.Member("data")))
	a.Say("task.notification", map[string]any{"taskId": task.Text("taskId"), "notificationType": "progress", "message": "half"})
	a.Say("agent.task.result", map[string]any{"taskId": task.Text("taskId"), "result": map[string]any{"sum": 3}})
	end := c.Until("client.agent.task.result")
	require.JSONEq(t, `{"sum":3}`, string(end.Member("result")))
	require.Contains(t, c.Types(), "task.notification")
}

// TestAClientWithoutAnAgentOfItsOwn: the model of the installation does its task, with
// its tools, and the client hears of them.
func TestAClientWithoutAnAgentOfItsOwn(t *testing.T) {
	_, addr := up(t, nil)
	c := visit(t, addr, "")
	c.Say("client.agent.task.create.request", map[string]any{"agentName": "assistant", "taskData": map[string]any{"question": question}})
	end := c.Until("client.agent.task.result")
	var result struct {
		Text string `json:"text"`
	}
	require.NoError(t, json.Unmarshal(end.Member("result"), &result))
	require.Contains(t, result.Text, "notes.md")
	require.Contains(t, result.Text, "Welcome to your workspace")
	tools := 0
	for _, f := range c.Frames {
		if f.Type == "task.notification" && f.Text("notificationType") == "progress" {
			tools++
		}
	}
	require.Equal(t, 2, tools, "one progress a tool: %v", c.Types())
}

// give creates a task and returns its id, as the client learns it.
func give(t *testing.T, c *client.Peer, content map[string]any) string {
	t.Helper()
	request := c.Say("client.agent.task.create.request", content)
	for {
		f := c.Until("client.agent.task.create.response")
		if f.RequestID == request {
			require.NotEmpty(t, f.Text("taskId"))
			return f.Text("taskId")
		}
	}
}

// TestAnAgentIsKilledInTheMiddleOfATask: another one gets the task, the client gets one
// result, and the first, when it is back, is told that its own is not wanted.
func TestAnAgentIsKilledInTheMiddleOfATask(t *testing.T) {
	f := newFleet(t, scripted.Smart())
	f.configure("gateway:\n  peers:\n    grace: 1s\n")
	f.serve("session,pipeline,task,tools")
	_, addr := f.gateway()
	first := enlist(t, addr, "", "first", "One", "math")
	c := visit(t, addr, "")
	task := give(t, c, map[string]any{"capabilities": []string{"math"}, "taskData": map[string]any{"a": 1}})
	require.Equal(t, task, first.Until("task.execute").Text("taskId"))
	second := enlist(t, addr, "", "second", "Two", "math")
	first.Drop()
	require.Equal(t, task, second.Until("task.execute").Text("taskId"))

	first = enlist(t, addr, "", "first", "One", "math")
	first.Say("agent.task.result", map[string]any{"taskId": task, "result": "of the first"})
	hive{t: t, addr: addr}.refused(task, "TASK_NOT_OWNED", 1)
	second.Say("agent.task.result", map[string]any{"taskId": task, "result": "of the second"})
	require.JSONEq(t, `"of the second"`, string(c.Until("client.agent.task.result").Member("result")))
	var shown struct {
		Attempt int
		Status  string
	}
	require.NoError(t, json.Unmarshal([]byte(process.Get(t, "http://"+addr+"/api/v1/tasks/"+task).Body), &shown))
	require.Equal(t, 2, shown.Attempt)
	require.Equal(t, "completed", shown.Status)
}

// TestTheGatewayOfASwarmIsKilled: client and agent come back at another gateway; the
// task goes on, and the client misses nothing.
func TestTheGatewayOfASwarmIsKilled(t *testing.T) {
	f := newFleet(t, scripted.Smart())
	f.serve("session,pipeline,task,tools")
	doomed, first := f.gateway()
	_, second := f.gateway()
	a := enlist(t, first, "", "agent-1", "One")
	c := client.DialPeer(t, first, clients, "")
	hello := c.Until("orchestrator.client.welcome")
	task := give(t, c, map[string]any{"agentName": "One", "taskData": "slow"})
	require.Equal(t, task, a.Until("task.execute").Text("taskId"))
	last := c.Frames[len(c.Frames)-1].Seq
	doomed.Kill()

	a = enlist(t, second, "", "agent-1", "One")
	back := client.DialPeer(t, second, clients, "")
	back.Until("orchestrator.client.welcome")
	back.Say("client.register", map[string]any{
		"clientId": hello.Text("clientId"), "resumeToken": hello.Text("resumeToken"), "lastSeq": last,
	})
	back.Until("client.register.response")
	a.Say("agent.task.result", map[string]any{"taskId": task, "result": "after all"})
	end := back.Until("client.agent.task.result")
	require.Equal(t, task, end.Text("taskId"))
	require.JSONEq(t, `"after all"`, string(end.Member("result")))
	require.Greater(t, end.Seq, last)
}

// TestTheProcessOfTheAssistantIsKilled: another one finishes the answer.
func TestTheProcessOfTheAssistantIsKilled(t *testing.T) {
	f := newFleet(t, func(x *scripted.Exchange) scripted.Reply {
		if x.N == 1 {
			return scripted.Stream(scripted.Text("half an "), scripted.Hang())
		}
		return scripted.Stream(scripted.Text("a whole ", "answer"))
	})
	f.serve("session,pipeline,task,tools")
	doomed := f.serve("worker")
	_, addr := f.gateway()
	process.Eventually(t, "the assistant is there", func() bool {
		return strings.Contains(process.Get(t, "http://"+addr+"/api/v1/agents").Body, `"assistant"`)
	})
	c := visit(t, addr, "")
	give(t, c, map[string]any{"capabilities": []string{"general"}, "taskData": "speak"})
	process.Eventually(t, "the model has begun", func() bool { return len(f.llm.Exchanges()) > 0 })
	f.serve("worker")
	doomed.Kill()
	require.JSONEq(t, `{"text":"a whole answer"}`, string(c.Until("client.agent.task.result").Member("result")))
}

// TestSwarmsOfTenantsAreApart: with the same names and ids, each tenant has its own
// agents, clients and tasks. The assistant is there for all of them.
func TestSwarmsOfTenantsAreApart(t *testing.T) {
	const red, blue = "key-of-red", "key-of-blue"
	f := newFleet(t, scripted.Always(scripted.Stream(scripted.Text("hello"))))
	f.configure(fmt.Sprintf("auth:\n  api_keys:\n    - {id: red, sha256: %s, tenant: red, roles: [user, agent]}\n    - {id: blue, sha256: %s, tenant: blue, roles: [user, agent]}\n",
		auth.HashKey(red), auth.HashKey(blue)))
	f.serve("session,pipeline,task,tools,worker")
	_, addr := f.gateway()
	agent := enlist(t, addr, red, "same", "Same")
	other := visit(t, addr, blue)
	request := other.Say("client.agent.task.create.request", map[string]any{"agentName": "Same", "taskData": 1})
	refusal, err := other.Next()
	require.NoError(t, err)
	require.Equal(t, "error", refusal.Type)
	require.Equal(t, request, refusal.RequestID)
	require.Equal(t, "AGENT_NOT_FOUND", refusal.Text("code"))

	mine := visit(t, addr, red)
	task := give(t, mine, map[string]any{"agentName": "Same", "taskData": 1})
	require.Equal(t, task, agent.Until("task.execute").Text("taskId"))
	twin := enlist(t, addr, blue, "same", "Same")
	twin.Say("agent.task.result", map[string]any{"taskId": task, "result": "stolen"})
	other.Say("client.agent.task.status.request", map[string]any{"taskId": task})
	refusal, err = other.Next()
	require.NoError(t, err)
	require.Equal(t, "TASK_NOT_FOUND", refusal.Text("code"))
	agent.Say("agent.task.result", map[string]any{"taskId": task, "result": "own"})
	require.JSONEq(t, `"own"`, string(mine.Until("client.agent.task.result").Member("result")))
	for _, c := range []*client.Peer{mine, other} {
		give(t, c, map[string]any{"agentName": "assistant", "taskData": "hi"})
		require.JSONEq(t, `{"text":"hello"}`, string(c.Until("client.agent.task.result").Member("result")))
	}
}

// TestProgramsWhoseAddressesAreFixed: an agent and a client at the further addresses,
// whatever the path.
func TestProgramsWhoseAddressesAreFixed(t *testing.T) {
	f := newFleet(t, scripted.Smart())
	forClients, forAgents := process.FreeAddr(t), process.FreeAddr(t)
	f.configure(fmt.Sprintf("gateway:\n  legacy: {client: %q, agent: %q}\n", forClients, forAgents))
	f.serve("session,pipeline,task,tools")
	f.gateway()
	a := client.DialPeer(t, forAgents, "/", "")
	a.Until("orchestrator.welcome")
	a.Say("agent.register", map[string]any{"name": "Old"})
	a.Until("agent.registered")
	c := client.DialPeer(t, forClients, "/any/path", "")
	c.Until("orchestrator.client.welcome")
	task := give(t, c, map[string]any{"agentName": "Old", "taskData": 1})
	a.Until("task.execute")
	a.Say("agent.task.result", map[string]any{"taskId": task, "result": 2})
	require.JSONEq(t, `2`, string(c.Until("client.agent.task.result").Member("result")))
}
