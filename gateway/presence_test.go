package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/asp"
	presence "github.com/waggle-dev/waggle/gateway/asp/participants"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/strictjson/hostile"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

func grace(d time.Duration) option {
	return func(c *gateway.Config, _ *gateway.Deps) { c.Participants.Grace = d }
}

func count(n int) func([]wirecmd.Participant) bool {
	return func(all []wirecmd.Participant) bool { return len(all) == n }
}

// A participant that comes back within the time of grace, to this gateway or another, has one
// entry again at once.
func TestAParticipantReconnects(t *testing.T) {
	s := startSwarm(t, grace(time.Hour))
	other := s.another(grace(time.Hour))
	agentID, serviceID := unique(), unique()
	for i, at := range []*swarm{s, other, s, s, other, other} {
		a, v := at.agent(agentID, "A"), at.service(serviceID)
		require.Equal(t, at.conn.Instance(), s.onlyEntry(wirecmd.ParticipantAgent, agentID).Gateway, "round %d", i)
		s.onlyEntry(wirecmd.ParticipantService, serviceID)
		a.cut()
		v.cut()
		for kind, participant := range map[string]string{wirecmd.ParticipantAgent: agentID, wirecmd.ParticipantService: serviceID} {
			s.until(kind, participant, "away", func(all []wirecmd.Participant) bool { return len(all) == 1 && !all[0].Online })
		}
	}
}

// The younger connection of an agent has its place, whatever the clock of its gateway
// says, and if its gateway has not even heard of the older one. Replicas of a service
// are there side by side.
func TestTheNewerConnectionTakesOver(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	slow := &handClock{now: time.Now().Add(-time.Hour)}
	other := s.another(func(_ *gateway.Config, d *gateway.Deps) { d.Clock = slow.Now })
	agentID, serviceID, task := unique(), unique(), unique()
	var old, young *client
	var before wirecmd.Participant
	other.unaware(func() {
		old = s.agent(agentID, "A")
		before = s.onlyEntry(wirecmd.ParticipantAgent, agentID)
		young, _ = other.join(pathAgent, "")
		young.sendASP("agent.register", "reg", map[string]any{"id": agentID, "name": "A", "capabilities": []string{"read"}})
		s.until(wirecmd.ParticipantAgent, agentID, "the other, too", func(all []wirecmd.Participant) bool {
			return len(all) > 1 || len(all) == 1 && all[0].Connection != before.Connection
		})
	})
	young.expectASP("agent.registered")
	after := s.until(wirecmd.ParticipantAgent, agentID, "one entry, the other", func(all []wirecmd.Participant) bool {
		return len(all) == 1 && all[0].Connection != before.Connection
	})[0]
	require.True(t, after.Since.Before(before.Since), "its gateway's clock is an hour late")
	require.Equal(t, "+", s.deliver(after, taskLog("default", task), event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: task}}))
	young.expectASP("task.execute")
	// Reports of the older connection about its tasks still count: the agent is the same. Its
	// presence does not return with a status report, only with a registration.
	old.sendASP("agent.task.result", "", map[string]any{"taskId": task, "result": 1})
	require.Equal(t, "finish", s.nextCommand(task).Verb.String())
	old.cut()
	young.sendASP("agent.status", "x", map[string]any{"status": "busy"})
	young.expectASP("agent.status.updated")
	s.until(wirecmd.ParticipantAgent, agentID, "busy", func(all []wirecmd.Participant) bool { return len(all) == 1 && all[0].Status == "busy" })

	one, two := s.service(serviceID), other.service(serviceID)
	s.until(wirecmd.ParticipantService, serviceID, "two replicas", count(2))
	one.sendASP("service.unregister", "", map[string]any{})
	one.expectASP("service.unregistered")
	s.onlyEntry(wirecmd.ParticipantService, serviceID)
	two.cut()
}

// unaware calls f while the gateway does not hear of what changes in the directory.
func (s *swarm) unaware(f func()) {
	s.t.Helper()
	stuck, free := make(chan struct{}, 1), make(chan struct{})
	unwatch := s.dir.Watch(func() {
		select {
		case stuck <- struct{}{}:
		default:
		}
		<-free
	})
	defer unwatch()
	defer close(free)
	l, err := s.tasks.r.dir.Join(context.Background(), directory.Member{
		What: directory.WhatService, Name: id.MustName(unique()), Instance: id.MustName(unique()),
	})
	require.NoError(s.t, err)
	<-stuck
	f()
	require.NoError(s.t, l.Leave(context.Background()))
}

// A gateway that stops marks its participants as away, and leaves their presence to the gateway
// that they reconnect to.
func TestPresenceOutlivesItsGateway(t *testing.T) {
	s := startSwarm(t)
	other := s.another()
	agentID := unique()
	c := other.agent(agentID, "A")
	s.onlyEntry(wirecmd.ParticipantAgent, agentID)
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- other.srv.Drain(ctx) }()
	c.closes(1012) // without an error frame, which ends programs that use the SDK
	require.NoError(t, <-drained)
	other.srv.Stop()
	other.dir.Close()
	all := s.until(wirecmd.ParticipantAgent, agentID, "away", func(all []wirecmd.Participant) bool { return len(all) == 1 && !all[0].Online })
	require.Equal(t, other.conn.Instance(), all[0].Gateway)
	s.agent(agentID, "A")
	s.until(wirecmd.ParticipantAgent, agentID, "back", func(all []wirecmd.Participant) bool {
		return len(all) > 0 && all[len(all)-1].Online || len(all) == 2 && all[0].Online
	})
}

// Participants of two tenants have nothing to do with each other, whatever they call
// themselves.
func TestTenantsOfASwarm(t *testing.T) {
	s := startSwarm(t, authenticated(key("alice", "acme", auth.RoleUser, auth.RoleAgent, auth.RoleService), key("bob", "globex", auth.RoleUser, auth.RoleAgent, auth.RoleService)))
	agentID, task := unique(), unique()
	a, b := s.agent(agentID, "A", bearer("alice")...), s.agent(agentID, "A", bearer("bob")...)
	both := s.until(wirecmd.ParticipantAgent, agentID, "both", count(2))
	tenants := map[string]wirecmd.Participant{}
	for _, p := range both {
		require.True(t, p.Online)
		tenants[p.Tenant.String()] = p
	}
	require.Len(t, tenants, 2)
	assigned := event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: task}}
	require.Equal(t, "-", s.deliver(tenants["acme"], taskLog("globex", task), assigned))
	require.Equal(t, "+", s.deliver(tenants["globex"], taskLog("globex", task), assigned))
	b.expectASP("task.execute")
	a.sendASP("agent.task.result", "", map[string]any{"taskId": task, "agentId": "somebody", "result": 1, "tenant": "globex"})
	cmd := s.nextCommand(task)
	require.Contains(t, string(cmd.Data), `"agent_id":"`+agentID+`"`, "an agent sends in its own name only")
	require.Equal(t, []string{"acme", "who-alice"}, []string{cmd.Tenant.String(), cmd.Principal})
	a.sendASP("agent.agent.list.request", "x", map[string]any{"tenant": "globex"})
	a.expectASP("agent.agent.list.response")
	require.Equal(t, "acme", s.tasks.last().Tenant.String())

	c, hello := s.join(pathClient, "", bearer("alice")...)
	c.leave()
	for _, token := range []string{hello.Content.ResumeToken, "", "guess"} {
		s.path = pathClient
		thief := s.dial(fmt.Sprintf("clientId=%s&resumeToken=%s", hello.Content.ClientID, token), bearer("bob")...)
		h := thief.expectASP("error")
		require.Equal(t, string(fault.ClientNotFound), h.Content.Code)
		thief.closes(fault.Lookup(fault.SessionNotFound).Close)
	}
	_, status, _ := s.handshake("", bearer("nobody")...)
	require.Equal(t, 401, status)
}

// The operator has reserved a name: other principals get neither it nor an id that has it, in any spelling.
func TestReservedNamesAreRefused(t *testing.T) {
	t.Parallel()
	s := startSwarm(t, authenticated(key("alice", "acme", auth.RoleAgent, auth.RoleService), key("mallory", "acme", auth.RoleAgent, auth.RoleService)),
		func(c *gateway.Config, _ *gateway.Deps) {
			c.Participants.Names = map[string][]string{"Code Reviewer": {"who-alice"}, "assistant": nil}
		})
	for _, who := range []string{"mallory", "alice"} {
		for _, p := range []map[string]any{
			{"id": "x", "name": "assistant"},
			{"id": "x", "name": " ASSISTANT "},
			{"id": "Assistant", "name": "x"},
			{"id": "assistant-77", "name": "x"},
			{"id": "x", "name": "code  reviewer"},
			{"id": "CODE REVIEWER", "name": "x"},
		} {
			if who == "alice" && (p["name"] == "code  reviewer" || p["id"] == "CODE REVIEWER") {
				continue
			}
			c, _ := s.join(pathAgent, "", bearer(who)...)
			c.sendASP("agent.register", "reg", p)
			require.Contains(t, c.until(`"requestId":"reg"`), fault.Forbidden, "%s %v", who, p)
			c, _ = s.join(pathService, "", bearer(who)...)
			c.sendASP("service.register", "reg", p)
			require.Contains(t, c.until(`"requestId":"reg"`), fault.Forbidden, "%s %v", who, p)
		}
	}
	s.agent(unique(), "Code Reviewer", bearer("alice")...)
	s.agent(unique(), "Assistants' friend", bearer("mallory")...)
}

// The extra listeners serve one protocol under any path.
func TestExtraListeners(t *testing.T) {
	s := startSwarm(t, func(c *gateway.Config, _ *gateway.Deps) {
		c.Legacy = []gateway.Listener{{"127.0.0.1:0", []string{pathAgent}}, {"127.0.0.1:0", []string{"/ws"}}, {"[::1]:0", []string{pathClient, pathService}}}
	})
	addrs := s.srv.LegacyAddrs()
	require.Len(t, addrs, 4, "two listeners may want any free port of one address")
	require.NotEqual(t, addrs[pathAgent], addrs["/ws"])
	main := s.addr
	s.addr = addrs[pathAgent].String()
	for _, path := range []string{"/", "/any/path", pathClient} {
		s.path = path
		c := s.dial("")
		c.expectASP("orchestrator.welcome")
		c.leave()
	}
	s.path = "/"
	_, status, _ := s.handshake("", "Origin", "https://evil.example")
	require.Equal(t, 403, status)
	_, status, _ = s.handshake("", "Host", "evil.example")
	require.NotEqual(t, 101, status)
	s.addr, s.path = addrs["/ws"].String(), "/"
	s.dial("").must("agent_start")
	require.Equal(t, addrs[pathClient], addrs[pathService], "one address for two paths")
	s.addr = addrs[pathClient].String()
	for path, first := range map[string]string{pathClient: "orchestrator.client.welcome", pathService: "orchestrator.welcome"} {
		s.path = path
		c := s.dial("")
		c.expectASP(first)
		c.leave()
	}
	s.path = pathAgent
	_, status, _ = s.handshake("")
	require.Equal(t, 404, status, "and for no other")
	s.addr = main

	for addr, path := range map[string]string{"127.0.0.1:0": "/nowhere", "0.0.0.0:0": pathAgent, "127.0.0.1:99999": pathAgent} {
		cfg, dep := gateway.Config{Addr: "127.0.0.1:0", Legacy: []gateway.Listener{{addr, []string{path}}}}, s.deps()
		withSwarm(s.dir)(&cfg, &dep)
		dep.Registry = nil
		srv, err := gateway.New(cfg, dep)
		if err == nil {
			err = srv.Start(context.Background())
		}
		require.Error(t, err, addr)
		if srv != nil {
			srv.Stop()
		}
	}
	_, err := gateway.New(gateway.Config{Addr: "127.0.0.1:0", Participants: presence.Config{Grace: -1}}, s.deps())
	require.ErrorContains(t, err, "gateway.peers.grace")
	dep := s.deps()
	withSwarm(nil)(nil, &dep)
	_, err = gateway.New(gateway.Config{Addr: "127.0.0.1:0"}, dep)
	require.ErrorContains(t, err, "directory")
}

// Whatever an agent or a provider sends, it gets a fault, others continue, and the frame has no
// effect.
func TestHostileParticipants(t *testing.T) {
	t.Parallel()
	s := startSwarm(t, func(c *gateway.Config, _ *gateway.Deps) { c.Participants.Rate, c.Participants.Burst = 1e6, 1e6 })
	agentID := unique()
	bystander := s.agent(agentID, "A")
	for _, path := range []string{pathAgent, pathService, pathClient} {
		c, _ := s.join(path, "")
		n := 0
		for _, payload := range hostileFrames(t) {
			c.write(frame(fin|opText, payload))
			n++
		}
		c.sendASP("ping", "end", map[string]any{})
		for answers := 0; ; answers++ {
			b, err := c.text()
			require.NoError(t, err)
			h := parseASPFrame(t, b)
			if h.Type == "pong" && h.RequestID == "end" {
				require.Positive(t, answers)
				break
			}
			require.NotEqual(t, "INTERNAL", h.Content.Code, "%s", b)
		}
		c.leave()
	}
	require.Equal(t, "+", s.deliver(s.onlyEntry(wirecmd.ParticipantAgent, agentID), taskLog("default", "t"), event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: "t"}}))
	bystander.expectASP("task.execute")
}

// hostileFrames returns invalid documents, and frames with parts of the wrong form.
func hostileFrames(t *testing.T) (out [][]byte) {
	t.Helper()
	for _, d := range hostile.Documents() {
		if d.Code != fault.BadUTF8 {
			out = append(out, d.Body)
		}
	}
	values := []string{`null`, `[]`, `{}`, `0`, `-1`, `1e999`, `"` + "\\u0000" + `"`, `"` + strings.Repeat("x", 3000) + `"`, `true`, `[[[]]]`}
	var types []string
	for _, kind := range []string{wirecmd.ParticipantClient, wirecmd.ParticipantAgent, wirecmd.ParticipantService} {
		for _, row := range asp.Table(kind) {
			types = append(types, row.Type)
		}
	}
	for i, kind := range types {
		v := values[i%len(values)]
		if v == `null` && strings.HasSuffix(kind, ".register") {
			v = `[]` // one without an id ends the connection
		}
		out = append(out,
			fmt.Appendf(nil, `{"type":%q,"id":%s,"content":%s}`, kind, v, v),
			fmt.Appendf(nil, `{"type":%q,"id":"x","content":{"id":%[2]s,"agentId":%[2]s,"taskId":%[2]s,"name":%[2]s,"serviceId":%[2]s,"status":%[2]s,"tools":%[2]s,"message":%[2]s,"notification":%[2]s,"clientId":%[2]s,"resumeToken":%[2]s}}`, kind, v))
	}
	return out
}

func parseASPFrame(t *testing.T, b []byte) (h aspFrame) {
	t.Helper()
	var loose struct {
		Type, RequestID string
		Content         struct{ Code string }
	}
	require.NoError(t, json.Unmarshal(b, &loose), "%s", b)
	h.Type, h.RequestID, h.Content.Code = loose.Type, loose.RequestID, loose.Content.Code
	return h
}

// Agents that connect, leave, break off and connect twice, on two gateways, end up where they
// connected last, or unlisted.
func TestAgentsComeAndGo(t *testing.T) {
	t.Parallel()
	const agents, steps = 6, 90
	s := startSwarm(t, grace(time.Second))
	at := []*swarm{s, s.another(grace(time.Second))}
	rnd := rand.New(rand.NewPCG(4, 2))
	var ids [agents]string
	var last [agents]*client // nil = it is gone
	var where [agents]*swarm // of last: its gateway has heard of it
	var all [agents][]*client
	for i := range ids {
		ids[i] = unique()
	}
	for range steps {
		i := rnd.IntN(agents)
		switch c := last[i]; {
		case c == nil || rnd.IntN(3) == 0: // perhaps beside another connection
			where[i] = at[rnd.IntN(2)]
			last[i] = where[i].agent(ids[i], "A")
			all[i] = append(all[i], last[i])
		case rnd.IntN(2) == 0:
			c.cut()
			last[i] = nil
		default:
			c.sendASP("agent.unregister", "", map[string]any{})
			c.expectASP("agent.unregistered")
			last[i] = nil
		}
	}
	for i, c := range last {
		if c == nil { // an older connection may have kept its place if the younger one was short
			for _, old := range all[i] {
				_ = old.Conn.Close()
			}
			s.until(wirecmd.ParticipantAgent, ids[i], "gone", count(0))
			continue
		}
		p := where[i].onlyEntry(wirecmd.ParticipantAgent, ids[i])
		require.Equal(t, "+", s.deliver(p, taskLog("default", "t"), event.TaskAssignedData{TaskHead: event.TaskHead{TaskID: ids[i]}}))
		require.Equal(t, ids[i], c.expectASP("task.execute").Content.TaskID)
	}
}
