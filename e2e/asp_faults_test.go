package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
)

// TestAnAgentOfASwarmDies: its task goes to another, and what it says too late is
// refused.
func TestAnAgentOfASwarmDies(t *testing.T) {
	t.Parallel()
	h := one.forTenant(t).swarm()
	agents := map[string]*client.Swarm{"twin-1": h.agent("twin-1", "Twin", nil)}
	c := h.client()
	c.Say("client.agent.task.create.request", object{"agentName": "Twin", "taskData": object{}})
	given := agents["twin-1"].Until("task.execute")
	agents["twin-2"] = h.agent("twin-2", "Twin", nil)
	agents["twin-1"].Drop()
	again := agents["twin-2"].Until("task.execute")
	require.Equal(t, given.ID, again.ID)
	require.Contains(t, string(again.Content), `"attempt":2`)

	back := h.agent("twin-1", "Twin", nil)
	back.Say("agent.task.result", object{"taskId": given.ID, "result": "late"})
	h.refused(given.ID, "TASK_NOT_OWNED", 1)
	agents["twin-2"].Say("agent.task.result", object{"taskId": given.ID, "result": "in time"})
	end := c.Until("client.agent.task.result")
	require.JSONEq(t, `"in time"`, string(end.Member("result")))
	require.Equal(t, "twin-2", end.Text("agentId"))
	back.Say("agent.task.result", object{"taskId": given.ID, "result": "later"})
	h.refused(given.ID, "TASK_NOT_OWNED", 2)
	agents["twin-2"].Say("agent.task.result", object{"taskId": given.ID, "result": "twice"})
	h.refused(given.ID, "TASK_FINISHED", 1)
	require.Empty(t, append(back.Errors(), agents["twin-2"].Errors()...), "a result is never answered by an error")
	require.Equal(t, 1, times(c.Types(), "client.agent.task.result"))
}

func times(all []string, one string) (n int) {
	for _, each := range all {
		if each == one {
			n++
		}
	}
	return n
}
