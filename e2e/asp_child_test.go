//go:build nightly

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
)

// TestTheAgentOfAChildIsNamed: the frame that tells a client of a child task names the agent
// that gets it. If several may and none can now, a notification names it as soon as one has it.
func TestTheAgentOfAChildIsNamed(t *testing.T) {
	_, addr := up(t, []string{"WAGGLE_ASSISTANT_ENABLED=false"})
	h := swarmRig{t: t, addr: addr}
	lead, one, two := h.agent("lead", "Lead", nil), h.agent("twin-1", "Twin", nil), h.agent("twin-2", "Twin", nil)
	asker := h.client()
	asker.Say("client.agent.task.create.request", object{"agentId": "lead", "agentName": "Lead", "taskData": object{}})
	parent := lead.Until("task.execute").ID
	spawn := func() client.SwarmFrame {
		lead.Say("agent.request", object{"targetAgent": "Twin", "taskData": object{}, "parentTaskId": parent})
		created := asker.Until("task.childtask.created")
		require.Equal(t, parent, created.Text("parentTaskId"))
		return created
	}

	one.Ask("agent.status", object{"status": "inactive"})
	created := spawn()
	require.Equal(t, []string{"twin-2", "Twin"}, []string{created.Text("childAgentId"), created.Text("childAgentName")})
	given := two.Until("task.execute")
	require.Equal(t, created.Text("childTaskId"), given.ID)
	two.Say("agent.task.result", object{"taskId": given.ID, "result": "done"})
	asker.Until("task.childtask.status")

	two.Ask("agent.status", object{"status": "inactive"})
	created = spawn()
	require.Nil(t, created.Member("childAgentId"), "either of the two may have it")
	child := created.Text("childTaskId")
	one.Ask("agent.status", object{"status": "active"})
	require.Equal(t, child, one.Until("task.execute").ID)
	running := asker.Find("the child has an agent", func(f client.SwarmFrame) bool {
		var data struct{ Status string }
		return f.Type == "task.notification" && f.Text("childTaskId") == child && decodeMember(f, "data", &data) == nil && data.Status == "running"
	})
	require.Equal(t, []string{"twin-1", "Twin"}, []string{running.Text("agentId"), running.Text("childAgentName")})
}
