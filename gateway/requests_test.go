package gateway_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// expectPong sends a ping of WebSocket and reads up to its pong.
func (c *client) expectPong() {
	c.t.Helper()
	c.write(frame(fin|opPing, []byte("there?")))
	op, payload, err := c.read()
	for err == nil && op == opText {
		op, payload, err = c.read()
	}
	require.NoError(c.t, err)
	require.Equal(c.t, []any{byte(opPong), "there?"}, []any{op, string(payload)})
}

// expectSilence pings, and expects nothing before the pong.
func (c *client) expectSilence() {
	c.t.Helper()
	c.write(frame(fin|opPing, nil))
	op, _, err := c.read()
	require.NoError(c.t, err)
	require.EqualValues(c.t, opPong, op)
}

// holdLock holds the lock of a service, so that it does not answer, until the returned function
// or the end of the test releases it.
func holdLock(t *testing.T, mu *sync.Mutex) (free func()) {
	mu.Lock()
	free = sync.OnceFunc(mu.Unlock)
	t.Cleanup(free) // before the gateway stops
	return free
}

// An unanswered request delays pings neither of WebSocket nor of the protocol. The order of all
// other messages stays.
func TestPingsDoNotWaitForRequests(t *testing.T) {
	r, o := startMulti(t)
	l := r.session("default", "one")
	c, _ := r.dialMulti()
	free := holdLock(t, &o.mu)
	c.ask(multiRequest{Ask: "resume", Session: l.Entity.String(), EventID: "99"})
	c.ask(multiRequest{Ask: "act", Session: l.Entity.String(), Text: "bad"})
	c.expectPong()
	free()
	require.Equal(t, "CURSOR_INVALID", c.expectFrame("refused").Code)
	require.Equal(t, "INVALID_FIELD", c.expectFrame("refused").Code)
}

func TestPingsOfParticipantsDoNotWait(t *testing.T) {
	s := startSwarm(t)
	for _, path := range []string{pathAgent, pathClient} {
		c, _ := s.join(path, "")
		ask, answer := "agent.agent.list.request", "agent.agent.list.response"
		if path == pathClient {
			ask, answer = "client.agent.list.request", "client.agent.list.response"
		} else {
			c.sendASP("agent.register", "reg", map[string]any{"id": unique(), "name": "A"})
			c.expectASP("agent.registered")
		}
		free := holdLock(t, &s.tasks.mu)
		c.sendASP(ask, "slow", map[string]any{})
		c.sendASP("no.such.frame", "bad", map[string]any{"text": "ping"})
		for range 3 {
			c.sendASP("ping", "alive", map[string]any{})
			require.Equal(t, "alive", c.expectASP("pong").RequestID)
			c.expectPong()
		}
		free()
		require.Equal(t, "slow", c.expectASP(answer).RequestID)
		c.expectError("bad", fault.UnknownType)
		c.sendASP("ping", "after", map[string]any{})
		require.Equal(t, "after", c.expectASP("pong").RequestID)
	}
}

// A drain does not wait for a service that does not answer: it asks the client, in its dialect,
// to repeat the request on another gateway.
func TestADrainEndsRequests(t *testing.T) {
	t.Parallel()
	r, o := startMulti(t)
	l := r.session("default", "one")
	c, _ := r.dialMulti()
	holdLock(t, &o.mu)
	c.ask(multiRequest{Ask: "resume", Session: l.Entity.String(), After: ptr(uint64(0))})
	c.ask(multiRequest{Ask: "export", Session: l.Entity.String()})
	c.expectPong()
	drained := make(chan error, 1)
	go func() { drained <- r.srv.Drain(context.Background()) }()
	for range 2 {
		told := c.expectFrame("refused")
		require.Equal(t, string(fault.Draining), told.Code)
		require.Contains(t, told.Text, "send it again")
	}
	c.closes(1012)
	require.NoError(t, <-drained)
}

func TestADrainEndsRequestsOfParticipants(t *testing.T) {
	t.Parallel()
	s := startSwarm(t)
	s.tasks.tools = make(chan struct{})
	t.Cleanup(sync.OnceFunc(func() { close(s.tasks.tools) }))
	a := s.agent(unique(), "A")
	a.sendASP("mcp.tool.execute", "tool", map[string]any{"serverId": "m", "toolName": "x", "parameters": map[string]any{}})
	s.tasks.begins(1)
	holdLock(t, &s.tasks.mu)
	b := s.agent(unique(), "B")
	b.sendASP("agent.agent.list.request", "list", map[string]any{})
	b.expectPong()
	drained := make(chan error, 1)
	go func() { drained <- s.srv.Drain(context.Background()) }()
	for asked, c := range map[string]*client{"tool": a, "list": b} {
		c.expectError(asked, fault.Draining)
		c.closes(1012)
	}
	require.NoError(t, <-drained)
}

// A drain waits for short requests.
func TestADrainLetsShortRequestsFinish(t *testing.T) {
	r, o := startMulti(t)
	r.srv.SetDrainMaxWait(maxWait) // on a busy machine this one is not short
	l := r.session("default", "one")
	c, _ := r.dialMulti()
	free := holdLock(t, &o.mu)
	c.ask(multiRequest{Ask: "export", Session: l.Entity.String()})
	c.expectPong()
	drained := make(chan error, 1)
	go func() { drained <- r.srv.Drain(context.Background()) }()
	eventually(t, "it drains", func() bool { status, _, _ := r.get("/readyz"); return status == 503 })
	free()
	c.expectFrame("exported")
	c.closes(1012)
	require.NoError(t, <-drained)
}
