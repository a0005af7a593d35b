package gateway_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/gateway/dialect/myagent"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
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

// A client of the MyAgent protocol opens a session, sends a message, sees the events, leaves,
// and resumes in each of the ways that the protocol has.
func TestMyAgent(t *testing.T) {
	r, _ := withMyAgent(t)
	c := r.dial("deltas=all")
	link := c.framed("system.connected").Metadata.ConnectionID
	require.NotEmpty(t, link)
	c.write(text(`{"event":"user.create_session","timestamp":"2025-01-01T00:00:00Z","content":{"client_id":"phone"}}`))
	created := c.framed("agent.session_created")
	require.EqualValues(t, 1, created.Seq)
	require.NotEmpty(t, created.EventID)
	session := created.SessionID
	require.Empty(t, r.inbox(session), "nothing is stored of a session without a message")
	c.asks("user.message", session, `,"content":"hello"`)
	l := subject.Log{Tenant: mustTenant(t, "default"), Kind: "session", Entity: r.nextCommand(session).Key}
	said := r.nextCommand(session)
	require.Equal(t, wirecmd.Pipeline, said.Service)
	require.Contains(t, said.ReplyTo, "."+link)
	r.deltas(l, "m", 10)
	for seq := uint64(2); seq <= 11; seq++ {
		require.Equal(t, seq, c.framed("agent.partial_answer").Seq)
	}
	c.asks("user.ack", session, `,"metadata":{"last_seq":4}`)
	c.leave()
	var ack wirecmd.AckEvents
	require.NoError(t, r.nextCommand(session).Decode(&ack))
	require.Equal(t, wirecmd.AckEvents{ClientID: "phone", Seq: 4}, ack)

	c = r.dial("deltas=all")
	c.framed("system.connected")
	for _, rest := range []string{`,"content":{"last_seq":9}`, `,"content":{"last_event_id":"9"}`, `,"content":{"last_event_id":"` + session + `-9"}`} {
		c.asks("user.reconnect_with_state", session, rest)
		var last framed
		for seq := uint64(10); seq <= 11; seq++ {
			last = c.framed("agent.partial_answer")
			require.Equal(t, seq, last.Seq)
		}
		done := c.framed("system.notice").Metadata
		require.Equal(t, "replay", done.Action)
		require.Equal(t, 2, done.Replayed)
		require.EqualValues(t, 11, done.LastSeq)
		require.Equal(t, last.EventID, done.LastEventID, "the notice has the event_id of the newest event")
	}
	c.asks("user.reconnect_with_state", session, `,"content":{"last_seq":1,"batch":true}`)
	var batch struct {
		EventList []framed `json:"event_list"`
	}
	require.NoError(t, json.Unmarshal(c.framed("system.notice").Content, &batch))
	require.Len(t, batch.EventList, 10)
	require.EqualValues(t, 11, batch.EventList[9].Seq)
	require.Equal(t, 10, c.framed("system.notice").Metadata.Replayed)
	c.asks("user.reconnect_with_state", session, `,"content":{"last_seq":1,"merge":true}`)
	merged := c.framed("agent.partial_answer")
	require.EqualValues(t, 11, merged.Seq)
	require.EqualValues(t, 2, merged.Metadata.MergedFrom)
	require.Equal(t, 10, c.framed("system.notice").Metadata.Replayed)
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
