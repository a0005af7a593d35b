package growth_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/e2e/lab/growth"
	"github.com/waggle-dev/waggle/proto-schemas/api"
)

var agents = flag.String("agents", "10,200", "numbers of agents in the registry, ascending")

// TestAgents prints what agents in the registry cost: a start with them, memory, pages of the list, the registration of one more,
// and the hand-over of a task for which each of them would do. One of them is connected.
func TestAgents(t *testing.T) {
	i, have := install(t), 0
	table := growth.NewTable("agents", "start ms", "memory MiB", "first page ms", "page of a capability ms", "page of a state ms", "all pages ms", "registration ms", "hand-over ms", "memory after it MiB")
	for _, n := range sizes(t, *agents) {
		conn := i.connectAs("task")
		require.NoError(t, growth.Register(t.Context(), conn, have, n))
		conn.Close()
		have = n
		i.stop()
		i.start()
		require.Eventually(t, func() bool {
			return len(i.agents(url.Values{"prefix": {growth.AgentName(n - 1)}}).Agents) > 0
		}, time.Minute, 10*time.Millisecond)
		memory := i.memory()
		list := func(q url.Values) float64 {
			return ms(median(*repeat, func() time.Duration {
				began := time.Now()
				i.agents(q)
				return time.Since(began)
			}))
		}
		first, capability, state := list(nil), list(url.Values{"capability": {"c1"}}), list(url.Values{"status": {"inactive"}})
		whole := ms(i.allAgents(n))
		registration, handover := i.work()
		table.Add(n, ms(i.started), float64(memory), first, capability, state, whole, ms(registration), ms(handover), float64(i.memory()))
	}
	shown(t, "Agents", "Agents in the registry, of which one is connected. A page has 200 agents; the capability is that of each second agent.", table)
}

// agents returns a page of the list.
func (i *installation) agents(q url.Values) (page api.AgentList) {
	i.t.Helper()
	a := process.Get(i.t, "http://"+i.addr+"/api/v1/agents?"+q.Encode())
	if a.Status == 200 {
		require.NoError(i.t, json.Unmarshal([]byte(a.Body), &page))
	}
	return page
}

// allAgents returns how long all pages of 1,000 take, which have each agent once.
func (i *installation) allAgents(n int) time.Duration {
	i.t.Helper()
	began, seen, q := time.Now(), map[string]bool{}, url.Values{"limit": {"1000"}}
	for {
		page := i.agents(q)
		for _, one := range page.Agents {
			require.False(i.t, seen[one.ID], one.ID)
			seen[one.ID] = strings.HasPrefix(one.Name, growth.AgentPrefix)
		}
		if page.Next == "" {
			break
		}
		q.Set("before", page.Next)
	}
	took, grown := time.Since(began), 0
	for _, is := range seen {
		if is {
			grown++
		}
	}
	require.Equal(i.t, n, grown)
	return took
}

// work connects an agent and gives it tasks, and returns how long its registration and the hand-over of a task take.
func (i *installation) work() (registration, handover time.Duration) {
	i.t.Helper()
	c := client.DialSwarm(i.t, client.SwarmOptions{Role: proof.RoleClient, Addr: i.addr})
	defer c.Drop()
	c.Until("orchestrator.client.welcome")
	n := 0
	var a *client.Swarm
	registration = median(*repeat, func() time.Duration {
		if a != nil {
			a.Get("agent.unregistered", "agent.unregister", object{})
			a.Drop()
		}
		a = client.DialSwarm(i.t, client.SwarmOptions{Role: proof.RoleAgent, Addr: i.addr})
		a.Until("orchestrator.welcome")
		n++
		began := time.Now()
		a.Get("agent.registered", "agent.register", object{"id": fmt.Sprint("live-", n), "name": "Live", "capabilities": []string{growth.AgentCapability}})
		return time.Since(began)
	})
	defer func() { a.Drop() }()
	handover = median(*repeat, func() time.Duration {
		began := time.Now()
		c.Say("client.agent.task.create.request", object{"capabilities": []string{growth.AgentCapability}, "taskData": object{"do": "it"}})
		task := a.Until("task.execute")
		took := time.Since(began)
		a.Say("agent.task.result", object{"taskId": task.Text("taskId"), "result": "done"})
		c.Until("client.agent.task.result")
		return took
	})
	return registration, handover
}
