package gateway_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/dialect/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// framed is a frame of the MyAgent protocol, as far as the gateway has a part in it.
type framed struct {
	Event     string          `json:"event"`
	SessionID string          `json:"session_id"`
	Seq       uint64          `json:"seq"`
	EventID   string          `json:"event_id"`
	Content   json.RawMessage `json:"content"`
	Metadata  struct {
		ConnectionID string `json:"connection_id"`
		Action       string `json:"action"`
		ErrorCode    string `json:"error_code"`
		Replayed     int    `json:"replayed"`
		LastSeq      uint64 `json:"last_seq"`
		LastEventID  string `json:"last_event_id"`
		MergedFrom   uint64 `json:"merged_from"`
		First        uint64 `json:"first_available_seq"`
		Seq          uint64 `json:"seq"`
	} `json:"metadata"`
}

// framed returns the next frame, which has to be of the event.
func (c *client) framed(kind string) framed {
	c.t.Helper()
	b, err := c.text()
	require.NoError(c.t, err, "instead of %s", kind)
	var f framed
	require.NoError(c.t, json.Unmarshal(b, &f), "%s", b)
	require.Equal(c.t, kind, f.Event, "%s", b)
	return f
}

// asks sends a frame of the protocol.
func (c *client) asks(kind, session, rest string) {
	c.t.Helper()
	c.write(text(fmt.Sprintf(`{"event":%q,"session_id":%q,"timestamp":"2025-01-01T00:00:00Z"%s}`, kind, session, rest)))
}

// withMyAgent starts a gateway that serves the MyAgent protocol.
func withMyAgent(t *testing.T, opts ...option) (*rig, *sessionService) {
	t.Helper()
	r := prepare(t, sharedBus(t))
	d := myagent.Dialect(myagent.Settings{ServerVersion: "test", SessionTTL: 24 * time.Hour, Heartbeat: 30 * time.Second, MaxConcurrentTasks: 4})
	r.srv = r.server(append([]option{withMulti(d)}, opts...)...)
	o := startSessionService(r)
	r.serve()
	return r, o
}

// Impossible requests and expired sessions have faults in the protocol's own words.
func TestMyAgentRefusals(t *testing.T) {
	t.Parallel()
	clock := &handClock{now: time.Now()}
	r, o := withMyAgent(t, func(c *gateway.Config, d *gateway.Deps) {
		c.PingInterval, c.Heartbeat, d.Clock = 40*time.Millisecond, 30*time.Second, clock.Now
	})
	l := r.session("default", "two", "three", "four")
	session := l.Entity.String()
	c := r.dial("language=en_US")
	link := c.framed("system.connected").Metadata.ConnectionID
	c.write(text(`{"event":`))
	require.Equal(t, link, c.framed("error.validation").Metadata.ConnectionID)
	c.asks("user.message", "nobody", `,"content":"hello"`)
	require.Equal(t, "SESSION_EXPIRED", c.framed("error.recovery_failed").Metadata.ErrorCode)
	c.asks("user.reconnect_with_state", session, `,"content":{"last_seq":99}`)
	c.framed("error.validation")
	r.expire(l, 2)
	c.asks("user.reconnect_with_state", session, `,"content":{"last_seq":1}`)
	require.EqualValues(t, 3, c.framed("system.notice").Metadata.First)
	c.framed("agent.state_exported")
	require.EqualValues(t, 3, c.framed("agent.final_answer").Seq)
	require.EqualValues(t, 4, c.framed("agent.final_answer").Seq)
	require.Equal(t, "replay", c.framed("system.notice").Metadata.Action)
	clock.advance(30 * time.Second)
	beat := c.framed("system.heartbeat")
	require.EqualValues(t, 4, beat.Metadata.Seq)
	require.Equal(t, session, beat.SessionID)
	require.Zero(t, beat.Seq)

	c.asks("user.message", session, `,"content":"hello"`)
	to := directSubject(t, r.nextCommand(session).ReplyTo)
	e, err := event.New(l, unique(), "test", time.Now(), event.CommandRefusedData{Code: "INPUT_ANSWERED", Message: "answered", AnsweredBy: "bob"})
	require.NoError(t, err)
	b, err := json.Marshal(e)
	require.NoError(t, err)
	require.NoError(t, r.conn.NATS().Publish(to, b))
	told := c.framed("agent.error")
	require.Zero(t, told.Seq)
	require.Empty(t, told.EventID)
	o.srv.Stop()
	c.asks("user.request_state", session, "")
	c.framed("system.error")
	c.asks("user.message", session, `,"content":"still here"`)
	r.nextCommand(session)
}
