package e2e_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness"
)

// Where the participants of a swarm connect.
const (
	clients = "/ws/asp/client"
	agents  = "/ws/asp/agent"
)

// enlist connects an agent.
func enlist(t *testing.T, addr, key, agentID, name string, capabilities ...string) *harness.Peer {
	t.Helper()
	a := harness.DialPeer(t, addr, agents, key)
	a.Until("orchestrator.welcome")
	a.Say("agent.register", map[string]any{"id": agentID, "name": name, "capabilities": capabilities})
	a.Until("agent.registered")
	return a
}

// visit connects a client.
func visit(t *testing.T, addr, key string) *harness.Peer {
	t.Helper()
	c := harness.DialPeer(t, addr, clients, key)
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
