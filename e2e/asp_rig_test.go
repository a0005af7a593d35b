package e2e_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
)

// swarmRig is where the participants of one test meet.
type swarmRig struct {
	t    *testing.T
	addr string
	key  string
}

// client connects a client.
func (h swarmRig) client() *client.Swarm {
	h.t.Helper()
	c := client.DialSwarm(h.t, client.SwarmOptions{Role: proof.RoleClient, Addr: h.addr, Key: h.key})
	c.Until("orchestrator.client.welcome")
	return c
}

// agent connects an agent and waits until the swarm knows it.
func (h swarmRig) agent(agentID, name string, do func(*client.Swarm, client.SwarmFrame), capabilities ...string) *client.Swarm {
	h.t.Helper()
	a := client.DialSwarm(h.t, client.SwarmOptions{Role: proof.RoleAgent, Addr: h.addr, Key: h.key, Do: do})
	a.Until("orchestrator.welcome")
	a.Get("agent.registered", "agent.register", object{"id": agentID, "name": name, "capabilities": capabilities})
	process.Eventually(h.t, "the agent is known", func() bool {
		l := a.Ask("agent.agent.list.request", object{}) // an error until the task service runs
		return strings.Contains(string(l.Content), `"id":"`+agentID+`"`)
	})
	return a
}

// service connects a replica of a service and waits until the swarm knows it. Each
// replica has an id of its own.
func (h swarmRig) service(serviceID, name string, do func(*client.Swarm, client.SwarmFrame), tools ...object) *client.Swarm {
	h.t.Helper()
	s := client.DialSwarm(h.t, client.SwarmOptions{Role: proof.RoleService, Addr: h.addr, Key: h.key, Do: do})
	s.Until("orchestrator.welcome")
	s.Get("service.registered", "service.register", object{"id": serviceID, "name": name, "tools": tools})
	a := client.DialSwarm(h.t, client.SwarmOptions{Role: proof.RoleAgent, Addr: h.addr, Key: h.key})
	defer a.Drop()
	process.Eventually(h.t, "the service is known", func() bool {
		l := a.Ask("agent.service.list.request", object{}) // an error until the task service runs
		return strings.Contains(string(l.Content), `"id":"`+serviceID+`"`)
	})
	return s
}

// refused waits until the log of a task has so many refusals with the code.
func (h swarmRig) refused(task, code string, n int) {
	h.t.Helper()
	process.Eventually(h.t, "the refusal is recorded", func() bool {
		body := over(h.t, http.MethodGet, "http://"+h.addr+"/api/v1/tasks/"+task, h.key)
		return len(regexp.MustCompile(`"type":"task\.refused"[^}]*"code":"`+code+`"`).FindAllString(body, -1)) == n
	})
}

// object is the content of a frame.
type object = map[string]any

// adder is a tool that adds.
var adder = object{
	"id": "add", "name": "add", "description": "adds two numbers",
	"inputSchema": object{
		"type": "object", "required": []string{"a", "b"},
		"properties": object{"a": object{"type": "number"}, "b": object{"type": "number"}},
	},
	"outputSchema": object{"type": "object", "required": []string{"sum"}, "properties": object{"sum": object{"type": "number"}}},
}

// give creates a task and returns its id, as the client learns it.
func give(t *testing.T, c *client.Swarm, content map[string]any) string {
	t.Helper()
	f := c.Get("client.agent.task.create.response", "client.agent.task.create.request", content)
	require.NotEmpty(t, f.Text("taskId"))
	return f.Text("taskId")
}
