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
	p := s.alone(wirecmd.PeerAgent, agentID)
	given := event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: task, AgentID: agentID, Attempt: 1}, Data: json.RawMessage(`1`)}
	require.Equal(s.t, "+", s.hand(p, taskLog("default", task), given))
	require.Equal(s.t, task, c.hears("task.execute").Content.TaskID)
}

// A request that comes again is the same for the services, under another id of its command,
// and goes to the task that was meant, whatever the agent has by then. Other content makes
// another request.
func TestARequestThatComesAgain(t *testing.T) {
	s := swarming(t)
	agentID, task, other := unique(), unique(), unique()
	c := s.agent(agentID, "Reader")
	s.gives(c, agentID, task)
	call := map[string]any{"serverId": "m", "toolName": "x", "parameters": map[string]any{"a": 1}}
	child := map[string]any{"targetAgent": "B", "taskData": 1}
	c.says("mcp.tool.execute", "1", call)
	c.says("agent.request", "2", child)
	first, spawn := s.nextCommand(task), s.nextCommand(task)
	require.NotEmpty(t, first.Request)
	require.NotEqual(t, first.Request, spawn.Request)

	s.gives(c, agentID, other)
	c.says("mcp.tool.execute", "1", call)
	c.says("agent.request", "2", child)
	again, spawned := s.nextCommand(task), s.nextCommand(task)
	require.Equal(t, []string{first.Request, string(first.Data)}, []string{again.Request, string(again.Data)})
	require.Equal(t, []string{spawn.Request, string(spawn.Data)}, []string{spawned.Request, string(spawned.Data)})
	require.NotEqual(t, first.ID, again.ID)

	call["taskId"] = task
	c.says("mcp.tool.execute", "1", call)
	require.NotEqual(t, first.Request, s.nextCommand(task).Request)

	// On another gateway what names its task is the same, too.
	b := s.another()
	d := b.agent(agentID, "Reader")
	note := map[string]any{"taskId": task, "message": "half"}
	d.says("task.notification", "3", note)
	d.hears("task.message.received")
	said := s.nextCommand(task)
	d.says("task.notification", "3", note)
	d.hears("task.message.received")
	require.Equal(t, said.Request, s.nextCommand(task).Request)
}

// An agent goes on with what it was while its place is kept, on whichever gateway; after
// that it is another one, which may number its requests from the beginning.
func TestAnAgentIsAnotherOneAfterItsPlaceWasGivenUp(t *testing.T) {
	t.Parallel()
	s := swarming(t, func(c *gateway.Config, _ *gateway.Deps) { c.Peers.Grace = time.Hour })
	b := s.another(func(c *gateway.Config, _ *gateway.Deps) { c.Peers.Grace = time.Millisecond })
	agentID := unique()
	runs := func(c *client) (callID string) {
		c.says("mcp.tool.execute", "1", map[string]any{"serverId": "m", "toolName": "x"})
		c.hears("mcp.tool.execute.result")
		var r wirecmd.ToolRequest
		require.NoError(t, json.Unmarshal(s.desk.last().Data, &r))
		return r.CallID
	}
	c := s.agent(agentID, "Reader")
	first := runs(c)
	require.NotEmpty(t, first)
	require.Equal(t, first, runs(c))
	incarnation := s.alone(wirecmd.PeerAgent, agentID).Incarnation
	c.breaks()
	s.until(wirecmd.PeerAgent, agentID, "away", func(all []wirecmd.Peer) bool { return len(all) == 1 && !all[0].Online })

	d := b.agent(agentID, "Reader")
	require.Equal(t, incarnation, s.alone(wirecmd.PeerAgent, agentID).Incarnation)
	require.Equal(t, first, runs(d))
	d.breaks()
	s.until(wirecmd.PeerAgent, agentID, "gone", func(all []wirecmd.Peer) bool { return len(all) == 0 })
	c = s.agent(agentID, "Reader")
	require.NotEqual(t, incarnation, s.alone(wirecmd.PeerAgent, agentID).Incarnation)
	require.NotEqual(t, first, runs(c))
}

// What a service says of a call is handed on once, and acknowledged each time; its message
// to a client is one message on one connection, and another replica's is another one.
func TestAServiceThatRepeatsItself(t *testing.T) {
	s := swarming(t)
	serviceID := unique()
	c := s.service(serviceID)
	p := s.alone(wirecmd.PeerService, serviceID)
	by := s.caller()
	request := by.request("call-1")
	request.ServiceID = serviceID
	require.NotEqual(t, "-", s.hand(p, taskLog("default", "call-1"), request))
	c.hears("service.task.execute")
	note := func(text string) map[string]any {
		return map[string]any{"taskId": "call-1", "notification": map[string]any{"message": text, "timestamp": "2026-03-01T12:00:00Z"}}
	}
	for range 2 {
		c.says("service.task.notification", "1", note("half"))
		c.hears("notification.received")
		c.says("service.task.notification", "", note("no id"))
		c.hears("notification.received")
	}
	c.says("service.task.notification", "1", note("other content"))
	for range 2 {
		c.says("service.task.result", "2", map[string]any{"taskId": "call-1", "result": 1})
	}
	var said []string
	for range 4 {
		news := by.hears()
		require.NotNil(t, news.Notification)
		said = append(said, news.Notification.Message)
	}
	require.Equal(t, []string{"half", "no id", "no id", "other content"}, said)
	require.True(t, by.hears().Final)
	c.hears("notification.received")
	c.unanswered()
	eventually(t, "the second result is dropped", func() bool { return s.metric("waggle_gateway_peer_frames_dropped_total") > 0 })
}

// A goodbye that is said again is answered again.
func TestAGoodbyeThatIsRepeated(t *testing.T) {
	s := swarming(t)
	a, v := s.agent(unique(), "Reader"), s.service(unique())
	for range 2 {
		a.says("agent.unregister", "1", map[string]any{})
		require.Equal(t, "1", a.hears("agent.unregistered").RequestID)
		v.says("service.unregister", "1", map[string]any{})
		require.Equal(t, "1", v.hears("service.unregistered").RequestID)
	}
	b, _ := s.join(pathAgent, "")
	b.says("agent.unregister", "1", map[string]any{})
	b.denied("1", fault.NotRegistered)
}
