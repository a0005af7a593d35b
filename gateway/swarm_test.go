package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// An agent registers in the directory, changes its entry, and withdraws it. The gateway sends
// its requests in its name.
func TestAnAgentRegistersItsPresence(t *testing.T) {
	s := startSwarm(t)
	agentID := unique()
	c := s.agent(agentID, "Reader")
	p := s.onlyEntry(wirecmd.ParticipantAgent, agentID)
	require.Equal(t, []string{"read"}, p.Capabilities)
	require.Equal(t, "default", p.Tenant.String())
	require.Equal(t, []string{"Reader", "active", "anonymous", s.conn.Instance()}, []string{p.Name, p.Status, p.Principal, p.Gateway})

	c.sendASP("agent.status", "st", map[string]any{"status": "busy"})
	require.Equal(t, "busy", c.expectASP("agent.status.updated").Content.Status)
	s.until(wirecmd.ParticipantAgent, agentID, "busy", func(all []wirecmd.Participant) bool {
		return len(all) == 1 && all[0].Status == "busy" && all[0].Since.Equal(p.Since)
	})

	c.sendASP("agent.agent.list.request", "li", map[string]any{})
	require.Equal(t, "li", c.expectASP("agent.agent.list.response").RequestID)
	asked := s.tasks.last()
	require.Equal(t, []string{"agent", agentID, "Reader", "li", "default", "anonymous", p.Gateway + "." + p.Connection},
		[]string{asked.Kind, asked.ID, asked.Name, asked.RequestID, asked.Tenant.String(), asked.Principal, asked.ReplyTo})

	task := unique()
	c.sendASP("agent.task.result", "", map[string]any{"taskId": task, "result": 1})
	cmd := s.nextCommand(task)
	require.Equal(t, []string{"finish", "default", "anonymous", p.Gateway + "." + p.Connection},
		[]string{cmd.Verb.String(), cmd.Tenant.String(), cmd.Principal, cmd.ReplyTo})
	require.Contains(t, cmd.Source, "waggle/gateway/")

	c.sendASP("agent.unregister", "bye", map[string]any{})
	c.expectASP("agent.unregistered")
	s.until(wirecmd.ParticipantAgent, agentID, "gone", func(all []wirecmd.Participant) bool { return len(all) == 0 })
	c.sendASP("task.status", "late", map[string]any{"taskId": task, "status": "started"})
	c.unanswered()
	require.Positive(t, s.metric("waggle_gateway_peer_frames_dropped_total"))
	c.sendASP("agent.register", "again", map[string]any{"id": agentID, "name": "Reader"})
	c.expectASP("agent.registered")
	s.onlyEntry(wirecmd.ParticipantAgent, agentID)
}

// Frames that need a presence are refused without one; lists do not need one.
func TestFramesBeforeRegistration(t *testing.T) {
	s := startSwarm(t)
	c, _ := s.join(pathAgent, "")
	all := map[string]any{"taskId": "t", "result": 1, "status": "started", "serverId": "m", "toolName": "x", "targetAgent": "a", "taskData": 1}
	for i, kind := range []string{"mcp.tool.execute", "agent.request"} {
		c.sendASP(kind, fmt.Sprint(i), all)
		c.expectError(fmt.Sprint(i), fault.NotRegistered)
		c.sendASP(kind, "", all)
		c.unanswered()
	}
	for _, kind := range []string{"agent.task.result", "task.status"} {
		c.sendASP(kind, "waits for no answer", all)
		c.unanswered()
	}
	c.sendASP("agent.agent.list.request", "li", map[string]any{})
	c.expectASP("agent.agent.list.response")
	c.sendASP("agent.register", "r", map[string]any{"name": "no id"})
	require.NotEmpty(t, c.expectASP("agent.registered").Content.AgentID)
	v, _ := s.join(pathService, "")
	v.sendASP("service.task.result", "x", map[string]any{"taskId": "t", "result": 1})
	v.unanswered()
	v.sendASP("service.register", "big", map[string]any{"id": "v", "name": "v", "description": "x", "extra": strings.Repeat("x", 70<<10)})
	v.expectError("big", fault.InvalidField)
	v.sendASP("service.register", "", map[string]any{"id": "v", "name": "v", "extra": strings.Repeat("x", 70<<10)})
	v.closes(1008)
	c.sendASP("agent.register", "", map[string]any{"id": "nameless"})
	c.closes(1008)
}

// A failure whose details are too long ends its task without them: the agent is not told.
func TestAResultThatIsTooLong(t *testing.T) {
	s := startSwarm(t)
	c := s.agent(unique(), "A")
	task := unique()
	c.sendASP("agent.task.result", "r", map[string]any{"taskId": task, "error": "no", "details": strings.Repeat("x", 200<<10)})
	cmd := s.nextCommand(task)
	var r wirecmd.TaskResult
	require.NoError(t, cmd.Decode(&r))
	require.Equal(t, []string{"finish", string(fault.TaskFailed), "no"}, []string{cmd.Verb.String(), r.Code, r.Error})
	require.True(t, r.Failed)
	require.Less(t, len(cmd.Data), 1000)
	c.unanswered()
}

// A task is confirmed once its frame is queued; a task that cannot be handed over is refused.
// The load in the directory counts tasks that are handed over and not done.
func TestTasksAreHandedToAgents(t *testing.T) {
	s := startSwarm(t)
	agentID, task := unique(), unique()
	c := s.agent(agentID, "Worker")
	p := s.onlyEntry(wirecmd.ParticipantAgent, agentID)
	data := event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: task, AgentID: agentID, Attempt: 1}, Data: json.RawMessage(`{"n":1}`)}
	loaded := func(n int) {
		t.Helper()
		s.until(wirecmd.ParticipantAgent, agentID, fmt.Sprintf("load %d", n), func(all []wirecmd.Participant) bool { return len(all) == 1 && all[0].Load == n })
	}
	for i := range 3 {
		require.Equal(t, "+", s.deliver(p, taskLog("default", fmt.Sprintf("%s-%d", task, i)), data))
		h := c.expectASP("task.execute")
		require.JSONEq(t, `{"n":1}`, string(h.Content.Data))
	}
	loaded(3)
	c.sendASP("agent.task.result", "", map[string]any{"taskId": task + "-0", "result": 1})
	s.nextCommand(task + "-0")
	loaded(2)
	require.Equal(t, "+", s.deliver(p, taskLog("default", task+"-1"), event.TaskReleasedData{TaskHead: data.TaskHead}))
	c.expectASP("task.cancel")
	loaded(1)
	require.Equal(t, "+", s.deliver(p, taskLog("default", task+"-2"), event.TaskFinishedData{TaskHead: data.TaskHead, Status: "completed"}))
	loaded(0)

	require.Equal(t, "-", s.deliver(p, taskLog("foreign", task), data), "another tenant's task")
	stranger := p
	stranger.Connection = "cnobody"
	require.Equal(t, "-", s.deliver(stranger, taskLog("default", task), data))
	require.Equal(t, "-", s.deliver(p, taskLog("default", task), event.CallRequestedData{CallID: "c"}), "an agent is no service")
	c.sendASP("agent.unregister", "", map[string]any{})
	c.expectASP("agent.unregistered")
	require.Equal(t, "-", s.deliver(p, taskLog("default", task), data), "it has said goodbye")
	gw, connection, err := subject.ParseReplyTo(p.Gateway + "." + p.Connection)
	require.NoError(t, err)
	m, err := s.conn.NATS().Request(subject.Direct(gw, connection), []byte("nonsense"), maxWait)
	require.NoError(t, err)
	require.Equal(t, "-", string(m.Data))
}

// A service is handed calls, and what it says about each goes to the call's inbox.
func TestCallsOfAService(t *testing.T) {
	s := startSwarm(t, func(c *gateway.Config, _ *gateway.Deps) { c.Participants.Calls = 2 })
	serviceID := unique()
	c := s.service(serviceID)
	p := s.onlyEntry(wirecmd.ParticipantService, serviceID)
	require.Len(t, p.Tools, 1)
	one, two := s.caller(), s.caller()
	log := taskLog("default", "t")
	require.Equal(t, "+1", s.deliver(p, log, one.request("call-1")))
	h := c.expectASP("service.task.execute")
	require.Equal(t, "call-1", h.ID)
	require.JSONEq(t, `{"a":1}`, string(h.Content.Params))
	require.Equal(t, "+2", s.deliver(p, log, two.request("call-2")))
	c.expectASP("service.task.execute")
	s.until(wirecmd.ParticipantService, serviceID, "load 2", func(all []wirecmd.Participant) bool { return all[0].Load == 2 })
	require.Equal(t, "-", s.deliver(p, log, one.request("call-3")), "it has as many as it may")
	require.Equal(t, "-", s.deliver(p, log, event.CallRequestedData{CallID: "call-4"}), "the call has no inbox")

	c.sendASP("service.task.notification", "n1", map[string]any{"taskId": "call-1", "notification": map[string]any{"type": "progress", "message": "half"}})
	require.Equal(t, "n1", c.expectASP("notification.received").RequestID)
	n := one.nextNews()
	require.False(t, n.Final)
	require.Equal(t, []string{"call-1", serviceID, serviceID, "half"}, []string{n.CallID, n.ServiceID, n.Notification.Server, n.Notification.Message})

	again := s.caller()
	require.Equal(t, "+2", s.deliver(p, log, again.request("call-1")), "who asks again is told of the same run")
	c.sendASP("service.task.result", "", map[string]any{"taskId": "call-1", "result": map[string]any{"sum": 3}})
	end := again.nextNews()
	require.True(t, end.Final)
	require.JSONEq(t, `{"sum":3}`, string(end.Result))
	c.sendASP("service.task.notification", "n2", map[string]any{"taskId": "call-1", "notification": map[string]any{"type": "completed"}})
	c.expectASP("notification.received")
	require.False(t, again.nextNews().Final, "the SDK's last notification comes after the result")
	c.sendASP("service.task.result", "twice", map[string]any{"taskId": "call-1", "result": 4})
	c.unanswered()
	c.sendASP("service.task.result", "whose", map[string]any{"taskId": "call-9", "result": 4})
	c.unanswered()

	c.sendASP("service.error", "", map[string]any{"taskId": "call-2", "error": "broken"})
	end = two.nextNews()
	require.True(t, end.Final)
	require.Equal(t, string(fault.ToolFailed), end.Code)
	require.Contains(t, end.Error, "broken")
	require.Equal(t, "+1", s.deliver(p, log, one.request("call-5")))
	c.expectASP("service.task.execute")
	c.cut()
	end = one.nextNews()
	require.Equal(t, []string{"call-5", string(fault.ServiceLost)}, []string{end.CallID, end.Code})
}

// Long requests, such as runs of tools, delay no other frame, are bounded in number, and end
// with the socket.
func TestLongRequests(t *testing.T) {
	s := startSwarm(t, func(c *gateway.Config, _ *gateway.Deps) { c.Participants.Asks = 2 })
	s.tasks.tools = make(chan struct{})
	c := s.agent(unique(), "A")
	run := func(frameID string) {
		c.sendASP("mcp.tool.execute", frameID, map[string]any{"serverId": "m", "toolName": "x", "parameters": map[string]any{}})
	}
	run("one")
	run("two")
	s.tasks.begins(2)
	run("three")
	c.expectError("three", fault.RateLimited)
	c.sendASP("agent.agent.list.request", "li", map[string]any{})
	c.expectASP("agent.agent.list.response")
	s.tasks.tools <- struct{}{}
	require.Contains(t, []string{"one", "two"}, c.expectASP("mcp.tool.execute.result").RequestID)
	run("four")
	s.tasks.begins(1)
	check := s.settled()
	c.cut()
	check()
	close(s.tasks.tools)
}

// The limit counts running requests only: a participant may send the next one as soon as it has
// an answer.
func TestAnAnsweredRequestMakesRoom(t *testing.T) {
	t.Parallel()
	s := startSwarm(t, func(c *gateway.Config, _ *gateway.Deps) { c.Participants.Asks = 1 })
	c := s.agent(unique(), "A")
	for i := range 300 {
		c.sendASP("mcp.tool.execute", fmt.Sprint(i), map[string]any{"serverId": "m", "toolName": "x", "parameters": map[string]any{}})
		require.Equal(t, fmt.Sprint(i), c.expectASP("mcp.tool.execute.result").RequestID)
	}
}

// A silent participant is given up; one that answers pings is not. Services are pinged in the
// protocol's own words, too.
func TestPings(t *testing.T) {
	t.Parallel()
	s := startSwarm(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.Participants.Ping, c.Participants.Dead = 50*time.Millisecond, 2*time.Second
		c.PingInterval = time.Second // the sweeper looks every 250 ms
	})
	serviceID := unique()
	c := s.service(serviceID)
	for range 3 {
		h := c.expectASP("ping")
		c.sendASP("pong", h.ID, map[string]any{})
	}
	// From now on nothing is read or said.
	s.until(wirecmd.ParticipantService, serviceID, "away", func(all []wirecmd.Participant) bool { return len(all) == 1 && !all[0].Online })
	c.closes(4000)
}

// Frames over the rate wait, and cause no fault.
func TestFastFramesWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rate            float64
		burst, answered int
	}{
		"and are answered in order": {200, 1, 41}, "as long as they have to": {0.001, 3, 2}, // beside the registration
	} {
		t.Run(name, func(t *testing.T) {
			s := startSwarm(t, func(g *gateway.Config, _ *gateway.Deps) {
				g.Participants.Rate, g.Participants.Burst = c.rate, c.burst
				g.MessageRate, g.MessageBurst = 1, 1
			})
			agentID := unique()
			a := s.agent(agentID, "A")
			to := s.onlyEntry(wirecmd.ParticipantAgent, agentID)
			for i := range 41 {
				a.sendASP("agent.agent.list.request", fmt.Sprint(i), map[string]any{})
			}
			for i := range c.answered {
				require.Equal(t, fmt.Sprint(i), a.expectASP("agent.agent.list.response").RequestID)
			}
			for range 10 { // as many round trips as a request needs that does not wait, and more
				s.deliver(to, taskLog("default", "t"), event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: "t"}})
				a.expectASP("task.execute")
			}
		})
	}
}

// A result of angle brackets is as long on the bus as it was on the socket: as JSON
// for pages it would be six times as long, and more than a message may be.
func TestALongResultArrivesWhole(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	serviceID := unique()
	c := s.service(serviceID)
	p := s.onlyEntry(wirecmd.ParticipantService, serviceID)
	caller := s.caller()
	require.Equal(t, "+1", s.deliver(p, taskLog("default", "t"), caller.request("call-1")))
	c.expectASP("service.task.execute")
	text := strings.Repeat("<", 200<<10)
	c.write(frame(fin|opText, []byte(`{"type":"service.task.result","content":{"taskId":"call-1","result":"`+text+`"}}`)))
	end := caller.nextNews()
	require.True(t, end.Final)
	require.Empty(t, end.Code)
	require.Len(t, end.Result, len(text)+2)
}
