//go:build nightly

package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/client"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
)

// TestAnAgentThatDiedIsBack within its grace, under its id and knowing nothing: it is
// handed its task again. One that had only lost its line, and worked on in silence, ends
// the task once. testdata/asp holds the frames of each party.
func TestAnAgentThatDiedIsBack(t *testing.T) {
	_, addr := up(t, []string{"WAGGLE_ASSISTANT_ENABLED=false"})
	h := swarmRig{t: t, addr: addr}
	c := h.client()
	sdk := func() *client.Swarm { // registers as the SDK does: at once, without an id
		a := client.DialSwarm(t, client.SwarmOptions{Role: proof.RoleAgent, Addr: addr})
		require.NoError(t, a.Send(object{"type": "agent.register", "content": object{
			"id": "base-1", "agentId": "base-1", "name": "Base", "capabilities": []string{"x"}, "manifest": object{"id": "base-1"},
		}}))
		a.Until("agent.registered")
		return a
	}
	first := sdk()
	process.Eventually(t, "the agent is known", func() bool {
		return c.Ask("client.agent.task.status.request", object{"taskId": "none"}).Type == "error" &&
			string(c.Get("client.agent.list.response", "client.agent.list.request", object{}).Member("agents")) != "[]"
	})
	c.Say("client.agent.task.create.request", object{"agentId": "base-1", "taskData": object{"n": 1}})
	task := first.Until("task.execute").ID
	first.Say("task.status", object{"agentId": "base-1", "taskId": task, "status": "started"})
	first.Get("pong", "ping", object{})
	first.Drop()

	back := sdk()
	again := back.Until("task.execute")
	require.Equal(t, task, again.ID)
	require.Contains(t, string(again.Content), `"attempt":2`)
	require.NotContains(t, back.Types(), "task.cancel")
	for range 2 { // of the handler that worked on, and of the second one
		back.Say("agent.task.result", object{"agentId": "base-1", "taskId": task, "result": "done"})
	}
	h.refused(task, "TASK_FINISHED", 1)
	require.JSONEq(t, `"done"`, string(c.Until("client.agent.task.result").Member("result")))
	require.Equal(t, 1, times(c.Types(), "client.agent.task.result"))
	process.Eventually(t, "the result comes once more", func() bool { return len(c.Again()) == 1 })
	require.Empty(t, append(first.Errors(), back.Errors()...))
	transcribed(t, filepath.Join("testdata", "asp", "agent_back.txtar"), verify.SwarmTranscript(
		verify.Part{Name: "agent", Conn: first}, verify.Part{Name: "agent, back", Conn: back},
	))
}

// TestAnAgentWithSeveralTasksAsksAnother, as the SDK does it: without a parent. The parent is
// the task of its last frame. A late frame gets no answer.
func TestAnAgentWithSeveralTasksAsksAnother(t *testing.T) {
	_, addr := up(t, []string{"WAGGLE_ASSISTANT_ENABLED=false"})
	h := swarmRig{t: t, addr: addr}
	a := h.agent("base-1", "Base", nil)
	h.agent("helper-1", "Helper", func(b *client.Swarm, f client.SwarmFrame) {
		if f.Type == "task.execute" {
			b.Say("agent.task.result", object{"agentId": "helper-1", "taskId": f.ID, "result": object{"help": true}})
		}
	})
	c := h.client()
	var tasks []string
	for range 2 {
		c.Say("client.agent.task.create.request", object{"agentName": "Base", "taskData": object{}})
		tasks = append(tasks, a.Until("task.execute").ID)
	}
	for _, task := range []string{tasks[0], tasks[1], tasks[0]} {
		a.Say("task.status", object{"agentId": "base-1", "taskId": task, "status": "started"})
		a.Say("agent.request", object{"targetAgent": "Helper", "taskData": object{"type": "generic"}})
		require.Equal(t, task, a.Until("childagent.request.accepted").Text("parentTaskId"))
		end := a.Until("childagent.response")
		require.Equal(t, []string{task, "", "completed"}, []string{end.Text("parentTaskId"), end.RequestID, end.Text("status")})
		require.Equal(t, task, c.Until("task.childtask.status").Text("parentTaskId"))
	}
	for _, task := range tasks {
		a.Say("agent.task.result", object{"agentId": "base-1", "taskId": task, "result": "done"})
		c.Until("client.agent.task.result")
		for kind, more := range map[string]object{
			"agent.task.result": {"result": "late"}, "task.status": {"status": "running"}, "task.message": {"message": object{"type": "progress"}},
			"task.error": {"error": "late"}, "task.notification": {"notificationType": "info", "message": "late"},
		} {
			more["agentId"], more["taskId"] = "base-1", task
			a.Unanswered(kind, more)
		}
	}
	a.Say("agent.request", object{"targetAgent": "Helper", "taskData": object{"type": "generic"}})
	require.Empty(t, a.Until("childagent.request.accepted").Text("parentTaskId"), "it has no task any more")
	require.Equal(t, "completed", a.Until("childagent.response").Text("status"))
	for _, task := range tasks {
		h.refused(task, "TASK_FINISHED", 2) // the result and the error: a status may follow a result
	}
	require.Empty(t, a.Errors())
}
