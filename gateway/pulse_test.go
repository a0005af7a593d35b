package gateway_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/bus/bustest"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// alive sends a ping of WebSocket and reads its pong, and what is shown before it.
func (c *client) alive() {
	c.t.Helper()
	c.write(frame(fin|opPing, []byte("there?")))
	op, payload, err := c.read()
	for err == nil && op == opText {
		op, payload, err = c.read()
	}
	require.NoError(c.t, err)
	require.Equal(c.t, []any{byte(opPong), "there?"}, []any{op, string(payload)})
}

// holds locks what answers requests, until the test or the returned function ends it.
func holds(t *testing.T, mu *sync.Mutex) (free func()) {
	mu.Lock()
	free = sync.OnceFunc(mu.Unlock)
	t.Cleanup(free) // before the gateway stops
	return free
}

// A socket whose messages wait for services that are not there answers pings, and
// takes the messages up when they are.
func TestPingsDoNotWaitForServices(t *testing.T) {
	t.Parallel()
	r := prepare(t, bustest.Single(t))
	r.openDirectory()
	r.srv = r.server(crews, func(c *gateway.Config, d *gateway.Deps) {
		c.ReadyTimeout = patience
		d.Routes["/ws"] = r.deps().Routes["/ws"]
	})
	r.serve()
	r.teamDesk()
	l, team := r.session("default"), r.runLog(id.KindTeam, "default")
	chat := r.open("/ws", "session="+l.Entity.String())
	chat.must("agent_start")
	crowd := r.open("/ws/agent-team/"+team.Entity.String(), "")
	crowd.welcomed(team.Entity.String())
	chat.write(message("one"))
	crowd.commands("say", "", "two")
	for range 3 {
		chat.alive()
		crowd.alive()
	}
	for _, name := range []string{"session", "pipeline", "worker", "tools", "team", "task"} {
		r.join(name)
	}
	chat.must("agent_ready")
	r.nextCommand(l.Entity.String())
	r.nextCommand(team.Entity.String())
}

// A request that is not answered keeps pings neither of WebSocket nor of the protocol
// waiting. The order of everything else stays.
func TestPingsDoNotWaitForRequests(t *testing.T) {
	r, o := several(t)
	l := r.session("default", "one")
	c, _ := r.talker()
	free := holds(t, &o.mu)
	c.ask(asked{Ask: "resume", Session: l.Entity.String(), EventID: "waits"})
	c.ask(asked{Ask: "act", Session: l.Entity.String(), Text: "bad"})
	c.alive()
	free()
	require.Equal(t, "CURSOR_INVALID", c.said("refused").Code)
	require.Equal(t, "INVALID_FIELD", c.said("refused").Code)
}

func TestPingsOfPeersDoNotWait(t *testing.T) {
	s := swarming(t)
	for _, path := range []string{pathAgent, pathClient} {
		c, _ := s.join(path, "")
		ask, answer := "agent.agent.list.request", "agent.agent.list.response"
		if path == pathClient {
			ask, answer = "client.agent.list.request", "client.agent.list.response"
		} else {
			c.says("agent.register", "reg", map[string]any{"id": unique(), "name": "A"})
			c.hears("agent.registered")
		}
		free := holds(t, &s.desk.mu)
		c.says(ask, "slow", map[string]any{})
		c.says("no.such.frame", "bad", map[string]any{"text": "ping"})
		for range 3 {
			c.says("ping", "alive", map[string]any{})
			require.Equal(t, "alive", c.hears("pong").RequestID)
			c.alive()
		}
		free()
		require.Equal(t, "slow", c.hears(answer).RequestID)
		c.denied("bad", fault.UnknownType)
		c.says("ping", "after", map[string]any{})
		require.Equal(t, "after", c.hears("pong").RequestID)
	}
}

// A drain does not wait for who does not answer: the client is told in its dialect that
// it has to ask again, elsewhere.
func TestADrainEndsWhatIsAsked(t *testing.T) {
	t.Parallel()
	r, o := several(t)
	l := r.session("default", "one")
	c, _ := r.talker()
	holds(t, &o.mu)
	c.ask(asked{Ask: "resume", Session: l.Entity.String(), After: ptr(uint64(0))})
	c.ask(asked{Ask: "export", Session: l.Entity.String()})
	c.alive()
	drained := make(chan error, 1)
	go func() { drained <- r.srv.Drain(context.Background()) }()
	for range 2 {
		told := c.said("refused")
		require.Equal(t, string(fault.Draining), told.Code)
		require.Contains(t, told.Text, "send it again")
	}
	c.closes(1012)
	require.NoError(t, <-drained)
}

func TestADrainEndsWhatPeersAsk(t *testing.T) {
	t.Parallel()
	s := swarming(t)
	s.desk.tools = make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(s.desk.tools) }))
	a := s.agent(unique(), "A")
	a.says("mcp.tool.execute", "tool", map[string]any{"serverId": "m", "toolName": "x", "parameters": map[string]any{}})
	s.desk.begins(1)
	holds(t, &s.desk.mu)
	b := s.agent(unique(), "B")
	b.says("agent.agent.list.request", "list", map[string]any{})
	b.alive()
	drained := make(chan error, 1)
	go func() { drained <- s.srv.Drain(context.Background()) }()
	for asked, c := range map[string]*client{"tool": a, "list": b} {
		c.denied(asked, fault.Draining)
		c.closes(1012)
	}
	require.NoError(t, <-drained)
}

// What is done within a moment is done before the socket is sent away.
func TestADrainLetsFinish(t *testing.T) {
	r, o := several(t)
	l := r.session("default", "one")
	c, _ := r.talker()
	free := holds(t, &o.mu)
	c.ask(asked{Ask: "export", Session: l.Entity.String()})
	c.alive()
	drained := make(chan error, 1)
	go func() { drained <- r.srv.Drain(context.Background()) }()
	eventually(t, "it drains", func() bool { status, _, _ := r.get("/readyz"); return status == 503 })
	free()
	c.said("exported")
	c.closes(1012)
	require.NoError(t, <-drained)
}
