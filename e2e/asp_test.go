package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/freeport"
	"github.com/waggle-dev/waggle/services/model/scripted"
)

// TestATaskOfASwarm: a client gives a task to an agent and gets its result.
func TestATaskOfASwarm(t *testing.T) {
	_, addr := up(t, nil)
	a := swarmRig{t: t, addr: addr}.agent("agent-1", "Adder", nil, "math")
	c := swarmRig{t: t, addr: addr}.client()
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
	c := swarmRig{t: t, addr: addr}.client()
	c.Say("client.agent.task.create.request", map[string]any{"agentName": "assistant", "taskData": map[string]any{"question": question}})
	end := c.Until("client.agent.task.result")
	var result struct {
		Text string `json:"text"`
	}
	require.NoError(t, json.Unmarshal(end.Member("result"), &result))
	require.Contains(t, result.Text, "notes.md")
	require.Contains(t, result.Text, "Welcome to your workspace")
	tools := 0
	for _, f := range c.Frames() {
		if f.Type == "task.notification" && f.Text("notificationType") == "progress" {
			tools++
		}
	}
	require.Equal(t, 2, tools, "one progress a tool: %v", c.Types())
}

// give creates a task and returns its id, as the client learns it.
func give(t *testing.T, c *client.Swarm, content map[string]any) string {
	t.Helper()
	f := c.Get("client.agent.task.create.response", "client.agent.task.create.request", content)
	require.NotEmpty(t, f.Text("taskId"))
	return f.Text("taskId")
}

// TestAnAgentIsKilledInTheMiddleOfATask: another one gets the task, the client gets one
// result, and the first, when it is back, is told that its own is not wanted.
func TestAnAgentIsKilledInTheMiddleOfATask(t *testing.T) {
	f := newFleet(t, scripted.Smart())
	f.configure("gateway:\n  peers:\n    grace: 1s\n")
	f.serve("session,pipeline,task,tools")
	_, addr := f.gateway()
	first := swarmRig{t: t, addr: addr}.agent("first", "One", nil, "math")
	c := swarmRig{t: t, addr: addr}.client()
	task := give(t, c, map[string]any{"capabilities": []string{"math"}, "taskData": map[string]any{"a": 1}})
	require.Equal(t, task, first.Until("task.execute").Text("taskId"))
	second := swarmRig{t: t, addr: addr}.agent("second", "Two", nil, "math")
	first.Drop()
	require.Equal(t, task, second.Until("task.execute").Text("taskId"))

	first = swarmRig{t: t, addr: addr}.agent("first", "One", nil, "math")
	first.Say("agent.task.result", map[string]any{"taskId": task, "result": "of the first"})
	swarmRig{t: t, addr: addr}.refused(task, "TASK_NOT_OWNED", 1)
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
	a := swarmRig{t: t, addr: first}.agent("agent-1", "One", nil)
	c := client.DialSwarm(t, client.SwarmOptions{Role: proof.RoleClient, Addr: first})
	hello := c.Until("orchestrator.client.welcome")
	task := give(t, c, map[string]any{"agentName": "One", "taskData": "slow"})
	require.Equal(t, task, a.Until("task.execute").Text("taskId"))
	doomed.Kill()
	<-c.Ended()
	last := c.Frames()[len(c.Frames())-1].Seq

	a = swarmRig{t: t, addr: second}.agent("agent-1", "One", nil)
	back := client.DialSwarm(t, client.SwarmOptions{Role: proof.RoleClient, Addr: second})
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
	c := swarmRig{t: t, addr: addr}.client()
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
	f.configure(fmt.Sprintf("auth:\n  api_keys:\n    - {id: red, sha256: %s, tenant: red, roles: [user, agent, service]}\n    - {id: blue, sha256: %s, tenant: blue, roles: [user, agent, service]}\n",
		auth.HashKey(red), auth.HashKey(blue)))
	f.serve("session,pipeline,task,tools,worker")
	_, addr := f.gateway()
	agent := swarmRig{t: t, addr: addr, key: red}.agent("same", "Same", nil)
	other := swarmRig{t: t, addr: addr, key: blue}.client()
	refusal := other.Get("error", "client.agent.task.create.request", map[string]any{"agentName": "Same", "taskData": 1})
	require.Equal(t, "AGENT_NOT_FOUND", refusal.Text("code"))

	mine := swarmRig{t: t, addr: addr, key: red}.client()
	task := give(t, mine, map[string]any{"agentName": "Same", "taskData": 1})
	require.Equal(t, task, agent.Until("task.execute").Text("taskId"))
	twin := swarmRig{t: t, addr: addr, key: blue}.agent("same", "Same", nil)
	twin.Say("agent.task.result", map[string]any{"taskId": task, "result": "stolen"})
	refusal = other.Get("error", "client.agent.task.status.request", map[string]any{"taskId": task})
	require.Equal(t, "TASK_NOT_FOUND", refusal.Text("code"))
	agent.Say("agent.task.result", map[string]any{"taskId": task, "result": "own"})
	require.JSONEq(t, `"own"`, string(mine.Until("client.agent.task.result").Member("result")))
	for _, c := range []*client.Swarm{mine, other} {
		give(t, c, map[string]any{"agentName": "assistant", "taskData": "hi"})
		require.JSONEq(t, `{"text":"hello"}`, string(c.Until("client.agent.task.result").Member("result")))
	}
}

// TestProgramsWhoseAddressesAreFixed: an agent and a client at the further addresses,
// whatever the path.
func TestProgramsWhoseAddressesAreFixed(t *testing.T) {
	f := newFleet(t, scripted.Smart())
	forClients, forAgents := freeport.Addr(t), freeport.Addr(t)
	f.configure(fmt.Sprintf("gateway:\n  legacy: {client: %q, agent: %q}\n", forClients, forAgents))
	f.serve("session,pipeline,task,tools")
	f.gateway()
	a := client.DialSwarm(t, client.SwarmOptions{Role: proof.RoleAgent, Addr: forAgents, Path: "/"})
	a.Until("orchestrator.welcome")
	a.Say("agent.register", map[string]any{"name": "Old"})
	a.Until("agent.registered")
	c := client.DialSwarm(t, client.SwarmOptions{Role: proof.RoleClient, Addr: forClients, Path: "/any/path"})
	c.Until("orchestrator.client.welcome")
	task := give(t, c, map[string]any{"agentName": "Old", "taskData": 1})
	a.Until("task.execute")
	a.Say("agent.task.result", map[string]any{"taskId": task, "result": 2})
	require.JSONEq(t, `2`, string(c.Until("client.agent.task.result").Member("result")))
}
