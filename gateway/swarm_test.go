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

// An agent takes its place in the directory, changes what it says there, and gives it
// up. What it asks for is asked for in its name.
func TestAnAgentTakesItsPlace(t *testing.T) {
	s := swarming(t)
	agentID := unique()
	c := s.agent(agentID, "Reader")
	p := s.alone(wirecmd.PeerAgent, agentID)
	require.Equal(t, []string{"read"}, p.Capabilities)
	require.Equal(t, "default", p.Tenant.String())
	require.Equal(t, []string{"Reader", "active", "anonymous", s.conn.Instance()}, []string{p.Name, p.Status, p.Principal, p.Gateway})

	c.says("agent.status", "st", map[string]any{"status": "busy"})
	require.Equal(t, "busy", c.hears("agent.status.updated").Content.Status)
	s.until(wirecmd.PeerAgent, agentID, "busy", func(all []wirecmd.Peer) bool {
		return len(all) == 1 && all[0].Status == "busy" && all[0].Since.Equal(p.Since)
	})

	c.says("agent.agent.list.request", "li", map[string]any{})
	require.Equal(t, "li", c.hears("agent.agent.list.response").RequestID)
	asked := s.desk.last()
	require.Equal(t, []string{"agent", agentID, "Reader", "li", "default", "anonymous", p.Gateway + "." + p.Connection},
		[]string{asked.Kind, asked.ID, asked.Name, asked.RequestID, asked.Tenant.String(), asked.Principal, asked.ReplyTo})

	task := unique()
	c.says("agent.task.result", "", map[string]any{"taskId": task, "result": 1})
	cmd := s.nextCommand(task)
	require.Equal(t, []string{"finish", "default", "anonymous", p.Gateway + "." + p.Connection},
		[]string{cmd.Verb.String(), cmd.Tenant.String(), cmd.Principal, cmd.ReplyTo})
	require.Contains(t, cmd.Source, "waggle/gateway/")

	c.says("agent.unregister", "bye", map[string]any{})
	c.hears("agent.unregistered")
	s.until(wirecmd.PeerAgent, agentID, "gone", func(all []wirecmd.Peer) bool { return len(all) == 0 })
	c.says("task.status", "late", map[string]any{"taskId": task, "status": "started"})
	c.unanswered()
	require.Positive(t, s.metric("waggle_gateway_peer_frames_dropped_total"))
	c.says("agent.register", "again", map[string]any{"id": agentID, "name": "Reader"})
	c.hears("agent.registered")
	s.alone(wirecmd.PeerAgent, agentID)
}

// What needs a place is refused without one; looking around does not.
func TestFramesBeforeRegistration(t *testing.T) {
	s := swarming(t)
	c, _ := s.join(pathAgent, "")
	all := map[string]any{"taskId": "t", "result": 1, "status": "started", "serverId": "m", "toolName": "x", "targetAgent": "a", "taskData": 1}
	for i, kind := range []string{"mcp.tool.execute", "agent.request"} {
		c.says(kind, fmt.Sprint(i), all)
		c.denied(fmt.Sprint(i), fault.NotRegistered)
		c.says(kind, "", all)
		c.unanswered()
	}
	for _, kind := range []string{"agent.task.result", "task.status"} {
		c.says(kind, "waits for no answer", all)
		c.unanswered()
	}
	c.says("agent.agent.list.request", "li", map[string]any{})
	c.hears("agent.agent.list.response")
	c.says("agent.register", "r", map[string]any{"name": "no id"})
	require.NotEmpty(t, c.hears("agent.registered").Content.AgentID)
	v, _ := s.join(pathService, "")
	v.says("service.task.result", "x", map[string]any{"taskId": "t", "result": 1})
	v.unanswered()
	v.says("service.register", "big", map[string]any{"id": "v", "name": "v", "description": "x", "extra": strings.Repeat("x", 70<<10)})
	v.denied("big", fault.InvalidField)
	v.says("service.register", "", map[string]any{"id": "v", "name": "v", "extra": strings.Repeat("x", 70<<10)})
	v.closes(1008)
	c.says("agent.register", "", map[string]any{"id": "nameless"})
	c.closes(1008)
}

// A failure whose details are too long ends its task without them: the agent is not told.
func TestAResultThatIsTooLong(t *testing.T) {
	s := swarming(t)
	c := s.agent(unique(), "A")
	task := unique()
	c.says("agent.task.result", "r", map[string]any{"taskId": task, "error": "no", "details": strings.Repeat("x", 200<<10)})
	cmd := s.nextCommand(task)
	var r wirecmd.TaskResult
	require.NoError(t, cmd.Decode(&r))
	require.Equal(t, []string{"finish", string(fault.TaskFailed), "no"}, []string{cmd.Verb.String(), r.Code, r.Error})
	require.True(t, r.Failed)
	require.Less(t, len(cmd.Data), 1000)
	c.unanswered()
}

// A task is confirmed once its frame is queued; what cannot be handed on is refused.
// The load in the directory is what was handed over and is not done.
func TestTasksAreHandedToAgents(t *testing.T) {
	s := swarming(t)
	agentID, task := unique(), unique()
	c := s.agent(agentID, "Worker")
	p := s.alone(wirecmd.PeerAgent, agentID)
	data := event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: task, AgentID: agentID, Attempt: 1}, Data: json.RawMessage(`{"n":1}`)}
	loaded := func(n int) {
		t.Helper()
		s.until(wirecmd.PeerAgent, agentID, fmt.Sprintf("load %d", n), func(all []wirecmd.Peer) bool { return len(all) == 1 && all[0].Load == n })
	}
	for i := range 3 {
		require.Equal(t, "+", s.hand(p, taskLog("default", fmt.Sprintf("%s-%d", task, i)), data))
		h := c.hears("task.execute")
		require.JSONEq(t, `{"n":1}`, string(h.Content.Data))
	}
	loaded(3)
	c.says("agent.task.result", "", map[string]any{"taskId": task + "-0", "result": 1})
	s.nextCommand(task + "-0")
	loaded(2)
	require.Equal(t, "+", s.hand(p, taskLog("default", task+"-1"), event.TaskReleasedData{TaskHead: data.TaskHead}))
	c.hears("task.cancel")
	loaded(1)
	require.Equal(t, "+", s.hand(p, taskLog("default", task+"-2"), event.TaskFinishedData{TaskHead: data.TaskHead, Status: "completed"}))
	loaded(0)

	require.Equal(t, "-", s.hand(p, taskLog("foreign", task), data), "another tenant's task")
	stranger := p
	stranger.Connection = "cnobody"
	require.Equal(t, "-", s.hand(stranger, taskLog("default", task), data))
	require.Equal(t, "-", s.hand(p, taskLog("default", task), event.CallRequestedData{CallID: "c"}), "an agent is no service")
	c.says("agent.unregister", "", map[string]any{})
	c.hears("agent.unregistered")
	require.Equal(t, "-", s.hand(p, taskLog("default", task), data), "it has said goodbye")
	gw, connection, err := subject.ParseReplyTo(p.Gateway + "." + p.Connection)
	require.NoError(t, err)
	m, err := s.conn.NATS().Request(subject.Direct(gw, connection), []byte("nonsense"), patience)
	require.NoError(t, err)
	require.Equal(t, "-", string(m.Data))
}

// A service is handed calls, and what it says about each goes to the call's inbox.
func TestCallsOfAService(t *testing.T) {
	s := swarming(t, func(c *gateway.Config, _ *gateway.Deps) { c.Peers.Calls = 2 })
	serviceID := unique()
	c := s.service(serviceID)
	p := s.alone(wirecmd.PeerService, serviceID)
	require.Len(t, p.Tools, 1)
	one, two := s.caller(), s.caller()
	log := taskLog("default", "t")
	require.Equal(t, "+1", s.hand(p, log, one.request("call-1")))
	h := c.hears("service.task.execute")
	require.Equal(t, "call-1", h.ID)
	require.JSONEq(t, `{"a":1}`, string(h.Content.Params))
	require.Equal(t, "+2", s.hand(p, log, two.request("call-2")))
	c.hears("service.task.execute")
	s.until(wirecmd.PeerService, serviceID, "load 2", func(all []wirecmd.Peer) bool { return all[0].Load == 2 })
	require.Equal(t, "-", s.hand(p, log, one.request("call-3")), "it has as many as it may")
	require.Equal(t, "-", s.hand(p, log, event.CallRequestedData{CallID: "call-4"}), "nobody to answer to")

	c.says("service.task.notification", "n1", map[string]any{"taskId": "call-1", "notification": map[string]any{"type": "progress", "message": "half"}})
	require.Equal(t, "n1", c.hears("notification.received").RequestID)
	n := one.hears()
	require.False(t, n.Final)
	require.Equal(t, []string{"call-1", serviceID, serviceID, "half"}, []string{n.CallID, n.ServiceID, n.Notification.Server, n.Notification.Message})

	again := s.caller()
	require.Equal(t, "+2", s.hand(p, log, again.request("call-1")), "who asks again is told of the same run")
	c.says("service.task.result", "", map[string]any{"taskId": "call-1", "result": map[string]any{"sum": 3}})
	end := again.hears()
	require.True(t, end.Final)
	require.JSONEq(t, `{"sum":3}`, string(end.Result))
	c.says("service.task.notification", "n2", map[string]any{"taskId": "call-1", "notification": map[string]any{"type": "completed"}})
	c.hears("notification.received")
	require.False(t, again.hears().Final, "the SDK's last notification comes after the result")
	c.says("service.task.result", "twice", map[string]any{"taskId": "call-1", "result": 4})
	c.unanswered()
	c.says("service.task.result", "whose", map[string]any{"taskId": "call-9", "result": 4})
	c.unanswered()

	c.says("service.error", "", map[string]any{"taskId": "call-2", "error": "broken"})
	end = two.hears()
	require.True(t, end.Final)
	require.Equal(t, string(fault.ToolFailed), end.Code)
	require.Contains(t, end.Error, "broken")
	require.Equal(t, "+1", s.hand(p, log, one.request("call-5")))
	c.hears("service.task.execute")
	c.breaks()
	end = one.hears()
	require.Equal(t, []string{"call-5", string(fault.ServiceLost)}, []string{end.CallID, end.Code})
}

// What takes as long as a tool runs keeps nothing waiting, is bounded, and ends with
// the socket.
func TestLongRequests(t *testing.T) {
	s := swarming(t, func(c *gateway.Config, _ *gateway.Deps) { c.Peers.Asks = 2 })
	s.desk.tools = make(chan struct{})
	c := s.agent(unique(), "A")
	run := func(frameID string) {
		c.says("mcp.tool.execute", frameID, map[string]any{"serverId": "m", "toolName": "x", "parameters": map[string]any{}})
	}
	run("one")
	run("two")
	s.desk.begins(2)
	run("three")
	c.denied("three", fault.RateLimited)
	c.says("agent.agent.list.request", "li", map[string]any{})
	c.hears("agent.agent.list.response")
	s.desk.tools <- struct{}{}
	require.Contains(t, []string{"one", "two"}, c.hears("mcp.tool.execute.result").RequestID)
	run("four")
	s.desk.begins(1)
	check := s.settled()
	c.breaks()
	check()
	close(s.desk.tools)
}

// The limit is of what runs: whoever has an answer may ask again at once.
func TestAnAnsweredRequestMakesRoom(t *testing.T) {
	t.Parallel()
	s := swarming(t, func(c *gateway.Config, _ *gateway.Deps) { c.Peers.Asks = 1 })
	c := s.agent(unique(), "A")
	for i := range 300 {
		c.says("mcp.tool.execute", fmt.Sprint(i), map[string]any{"serverId": "m", "toolName": "x", "parameters": map[string]any{}})
		require.Equal(t, fmt.Sprint(i), c.hears("mcp.tool.execute.result").RequestID)
	}
}

// A silent peer is given up; one that answers pings is not. Services are pinged in the
// protocol's own words, too.
func TestPings(t *testing.T) {
	t.Parallel()
	s := swarming(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.Peers.Ping, c.Peers.Dead = 50*time.Millisecond, 2*time.Second
		c.PingInterval = time.Second // the sweeper looks every 250 ms
	})
	serviceID := unique()
	c := s.service(serviceID)
	for range 3 {
		h := c.hears("ping")
		c.says("pong", h.ID, map[string]any{})
	}
	// From now on nothing is read or said.
	s.until(wirecmd.PeerService, serviceID, "away", func(all []wirecmd.Peer) bool { return len(all) == 1 && !all[0].Online })
	c.closes(4000)
}

// Frames that come too fast wait; nobody is told off.
func TestFastFramesWait(t *testing.T) {
	t.Parallel()
	s := swarming(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.Peers.Rate, c.Peers.Burst = 200, 1
		c.MessageRate, c.MessageBurst = 1, 1
	})
	c := s.agent(unique(), "A")
	begin := time.Now()
	for i := range 41 {
		c.says("agent.agent.list.request", fmt.Sprint(i), map[string]any{})
	}
	for i := range 41 {
		require.Equal(t, fmt.Sprint(i), c.hears("agent.agent.list.response").RequestID)
	}
	require.Greater(t, time.Since(begin), 190*time.Millisecond)
}

// A result of angle brackets is as long on the bus as it was on the socket: as JSON
// for pages it would be six times as long, and more than a message may be.
func TestAResultArrivesAsLongAsItWas(t *testing.T) {
	t.Parallel()
	s := swarming(t)
	serviceID := unique()
	c := s.service(serviceID)
	p := s.alone(wirecmd.PeerService, serviceID)
	caller := s.caller()
	require.Equal(t, "+1", s.hand(p, taskLog("default", "t"), caller.request("call-1")))
	c.hears("service.task.execute")
	text := strings.Repeat("<", 200<<10)
	c.write(frame(fin|opText, []byte(`{"type":"service.task.result","content":{"taskId":"call-1","result":"`+text+`"}}`)))
	end := caller.hears()
	require.True(t, end.Final)
	require.Empty(t, end.Code)
	require.Len(t, end.Result, len(text)+2)
}
