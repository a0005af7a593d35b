package gateway_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// gives hands a task to an agent and waits until that has it.
func (s *swarm) gives(c *client, agentID, task string) {
	s.t.Helper()
	p := s.onlyEntry(wirecmd.ParticipantAgent, agentID)
	given := event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: task, AgentID: agentID, Attempt: 1}, Data: json.RawMessage(`1`)}
	require.Equal(s.t, "+", s.deliver(p, taskLog("default", task), given))
	require.Equal(s.t, task, c.expectASP("task.execute").Content.TaskID)
}

// A request that comes again is the same for the services, under another id of its command,
// and goes to the task that was meant, whatever the agent has by then. Other content makes
// another request.
func TestARepeatedRequest(t *testing.T) {
	s := startSwarm(t)
	agentID, task, other := unique(), unique(), unique()
	c := s.agent(agentID, "Reader")
	s.gives(c, agentID, task)
	call := map[string]any{"serverId": "m", "toolName": "x", "parameters": map[string]any{"a": 1}}
	child := map[string]any{"targetAgent": "B", "taskData": 1}
	c.sendASP("mcp.tool.execute", "1", call)
	c.sendASP("agent.request", "2", child)
	first, spawn := s.nextCommand(task), s.nextCommand(task)
	require.NotEmpty(t, first.Request)
	require.NotEqual(t, first.Request, spawn.Request)

	s.gives(c, agentID, other)
	c.sendASP("mcp.tool.execute", "1", call)
	c.sendASP("agent.request", "2", child)
	again, spawned := s.nextCommand(task), s.nextCommand(task)
	require.Equal(t, []string{first.Request, string(first.Data)}, []string{again.Request, string(again.Data)})
	require.Equal(t, []string{spawn.Request, string(spawn.Data)}, []string{spawned.Request, string(spawned.Data)})
	require.NotEqual(t, first.ID, again.ID)

	call["taskId"] = task
	c.sendASP("mcp.tool.execute", "1", call)
	require.NotEqual(t, first.Request, s.nextCommand(task).Request)

	// On another gateway what names its task is the same, too.
	b := s.another()
	d := b.agent(agentID, "Reader")
	note := map[string]any{"taskId": task, "message": "half"}
	d.sendASP("task.notification", "3", note)
	d.expectASP("task.message.received")
	said := s.nextCommand(task)
	d.sendASP("task.notification", "3", note)
	d.expectASP("task.message.received")
	require.Equal(t, said.Request, s.nextCommand(task).Request)
}

// An agent continues with what it was while its place is kept, on whichever gateway; after
// that it is another one, which may number its requests from the beginning.
func TestAnAgentThatLeftIsAnotherOne(t *testing.T) {
	t.Parallel()
	s := startSwarm(t, func(c *gateway.Config, _ *gateway.Deps) { c.Participants.Grace = time.Hour })
	b := s.another(func(c *gateway.Config, _ *gateway.Deps) { c.Participants.Grace = time.Millisecond })
	agentID := unique()
	runs := func(c *client) (callID string) {
		c.sendASP("mcp.tool.execute", "1", map[string]any{"serverId": "m", "toolName": "x"})
		c.expectASP("mcp.tool.execute.result")
		var r wirecmd.ToolRequest
		require.NoError(t, json.Unmarshal(s.tasks.last().Data, &r))
		return r.CallID
	}
	c := s.agent(agentID, "Reader")
	first := runs(c)
	require.NotEmpty(t, first)
	require.Equal(t, first, runs(c))
	incarnation := s.onlyEntry(wirecmd.ParticipantAgent, agentID).Incarnation
	c.cut()
	for _, at := range []*swarm{s, b} {
		at.until(wirecmd.ParticipantAgent, agentID, "away", func(all []wirecmd.Participant) bool { return len(all) == 1 && !all[0].Online })
	}

	d := b.agent(agentID, "Reader")
	require.Equal(t, incarnation, s.onlyEntry(wirecmd.ParticipantAgent, agentID).Incarnation)
	require.Equal(t, first, runs(d))
	d.cut()
	s.until(wirecmd.ParticipantAgent, agentID, "gone", func(all []wirecmd.Participant) bool { return len(all) == 0 })
	c = s.agent(agentID, "Reader")
	require.NotEqual(t, incarnation, s.onlyEntry(wirecmd.ParticipantAgent, agentID).Incarnation)
	require.NotEqual(t, first, runs(c))
}

// A provider's repeated report of a call is passed on once and acknowledged each time. Its
// repeated message to a client is one message on the same connection; another replica's is
// another message.
func TestAServiceThatRepeatsItself(t *testing.T) {
	s := startSwarm(t)
	serviceID := unique()
	c := s.service(serviceID)
	p := s.onlyEntry(wirecmd.ParticipantService, serviceID)
	by := s.caller()
	request := by.request("call-1")
	request.ServiceID = serviceID
	require.NotEqual(t, "-", s.deliver(p, taskLog("default", "call-1"), request))
	c.expectASP("service.task.execute")
	note := func(text string) map[string]any {
		return map[string]any{"taskId": "call-1", "notification": map[string]any{"message": text, "timestamp": "2026-03-01T12:00:00Z"}}
	}
	for range 2 {
		c.sendASP("service.task.notification", "1", note("half"))
		c.expectASP("notification.received")
		c.sendASP("service.task.notification", "", note("no id"))
		c.expectASP("notification.received")
	}
	c.sendASP("service.task.notification", "1", note("other content"))
	for range 2 {
		c.sendASP("service.task.result", "2", map[string]any{"taskId": "call-1", "result": 1})
	}
	var said []string
	for range 4 {
		news := by.nextNews()
		require.NotNil(t, news.Notification)
		said = append(said, news.Notification.Message)
	}
	require.Equal(t, []string{"half", "no id", "no id", "other content"}, said)
	require.True(t, by.nextNews().Final)
	c.expectASP("notification.received")
	c.unanswered()
	require.Positive(t, s.metric("waggle_gateway_peer_frames_dropped_total"), "the second result")
}

// A goodbye that is said again is answered again.
func TestARepeatedGoodbye(t *testing.T) {
	s := startSwarm(t)
	a, v := s.agent(unique(), "Reader"), s.service(unique())
	for range 2 {
		a.sendASP("agent.unregister", "1", map[string]any{})
		require.Equal(t, "1", a.expectASP("agent.unregistered").RequestID)
		v.sendASP("service.unregister", "1", map[string]any{})
		require.Equal(t, "1", v.expectASP("service.unregistered").RequestID)
	}
	b, _ := s.join(pathAgent, "")
	b.sendASP("agent.unregister", "1", map[string]any{})
	b.expectError("1", fault.NotRegistered)
}
