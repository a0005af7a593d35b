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
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// fails appends an error, which the protocol of sessions tells in the language of the session.
func (r *rig) fails(l subject.Log) {
	r.t.Helper()
	require.NoError(r.t, r.append(l, unique(), event.ErrorData{Code: "INTERNAL", Message: "it failed"}))
}

// startMulti returns a gateway whose sockets hold several sessions, and the session service of
// the test.
func startMulti(t testing.TB, opts ...option) (*rig, *sessionService) {
	t.Helper()
	r := prepare(t, sharedBus(t))
	return r, startSessionService(r, opts...)
}

// A frame asks for a session, which is there from its first event on; the next is
// another one. Commands name the connection, and their order is kept.
func TestSessionsOfASocket(t *testing.T) {
	r, _ := startMulti(t)
	c, link := r.dialMulti()
	first, open := c.openSession(r, multiRequest{Client: "phone", Lang: "en_US"})
	require.JSONEq(t, `{"dialect":"myagent","client_id":"phone","language":"en_US"}`, string(open.Data))
	require.Equal(t, wirecmd.Open, open.Verb)
	gateway, connection, err := subject.ParseReplyTo(open.ReplyTo)
	require.NoError(t, err)
	require.Equal(t, r.conn.Instance(), gateway.String())
	require.Equal(t, link, connection.String())
	second, _ := c.openSession(r, multiRequest{})
	require.NotEqual(t, first, second)
	c.write(text(`{"event":"user.message","event":"user.create_session"}`))
	require.Equal(t, "BAD_JSON", c.expectFrame("refused").Code)
	for i := range 10 {
		for _, l := range []subject.Log{first, second} {
			c.ask(multiRequest{Ask: "act", Session: l.Entity.String(), Text: fmt.Sprint(i)})
		}
	}
	for _, l := range []subject.Log{first, second} {
		for i := range 10 {
			got := r.nextCommand(l.Entity.String())
			require.JSONEq(t, fmt.Sprintf(`{"content":"%d","mode":"plan"}`, i), string(got.Data))
			require.Equal(t, open.ReplyTo, got.ReplyTo)
			require.Equal(t, "anonymous", got.Principal)
			require.Contains(t, got.Source, "waggle/gateway/")
		}
	}
	r.fails(first)
	require.Equal(t, "en_US", c.expectFrame("event").Lang)
	r.fails(second)
	require.Equal(t, "zh_CN", c.expectFrame("event").Lang)
	require.EqualValues(t, 2, r.metric("waggle_gateway_sessions"))
	c.leave()
	eventually(t, "the sessions are gone from the gateway", func() bool { return r.metric("waggle_gateway_sessions") == 0 })
}

// A client may simply continue with a session that it knows: it sees what comes from
// then on, and its messages are sent.
func TestActingOnASessionThatIsNotAttached(t *testing.T) {
	r, o := startMulti(t)
	o.language = "en_US"
	l := r.session("default", "one", "two")
	c, _ := r.dialMulti()
	c.ask(multiRequest{Ask: "act", Session: l.Entity.String(), Text: "bad"})
	require.Equal(t, "INVALID_FIELD", c.expectFrame("refused").Code)
	require.Empty(t, o.attaches(), "nothing was attached for nothing")
	for i := range 3 {
		c.ask(multiRequest{Ask: "act", Session: l.Entity.String(), Text: fmt.Sprint(i)})
		r.nextCommand(l.Entity.String())
	}
	require.Len(t, o.attaches(), 1)
	require.True(t, o.attaches()[0].Live)
	r.fails(l)
	s := c.expectFrame("event")
	require.EqualValues(t, 4, s.Seq)
	require.Equal(t, "en_US", s.Lang)
}

// An unknown session and a session of another tenant get the same answer. A malformed id is refused
// without a look at sessions.
func TestUnknownSessions(t *testing.T) {
	a := authenticated(key("alice", "acme"), key("bob", "globex"))
	r, o := startMulti(t, unlimited, a)
	l := r.session("acme", "secret")
	c, _ := r.dialMulti(bearer("bob")...)
	for _, ask := range []string{"act", "resume", "export"} {
		answers := map[string]multiFrame{}
		for _, session := range append(awkward(), "nobody", l.Entity.String()) {
			c.ask(multiRequest{Ask: "ack", Session: session, After: ptr(uint64(1))}) // has no answer
			c.ask(multiRequest{Ask: ask, Session: session, Text: "x", After: ptr(uint64(1))})
			s, want := c.expectFrame("refused"), "SESSION_EXPIRED"
			if _, err := id.ParseEntity(session); err != nil {
				want = "INVALID_FIELD"
			}
			require.Equal(t, want, s.Code, "%s %.40q", ask, session)
			require.Equal(t, multiTypes[ask].operation, s.Action)
			first, known := answers[want]
			if first.Session = s.Session; known {
				require.Equal(t, first, s, "%s of %.40q is told apart", ask, session)
			}
			answers[want] = s
		}
		require.Len(t, answers, 2)
		c.ask(multiRequest{Ask: ask, Text: "x"})
		require.Equal(t, "INVALID_FIELD", c.expectFrame("refused").Code, "%s without a session", ask)
	}
	for _, asked := range o.attaches() {
		require.Equal(t, "globex", asked.Tenant.String())
	}
	require.Empty(t, r.inbox(l.Entity.String()))
	require.Zero(t, r.metric("waggle_gateway_sessions"))
}

// A direct message is shown on its connection only.
func TestDirectMessages(t *testing.T) {
	r, _ := startMulti(t)
	one, _ := r.dialMulti()
	other, _ := r.dialMulti()
	l, open := one.openSession(r, multiRequest{Lang: "en_US"})
	to := directSubject(t, open.ReplyTo)
	other.ask(multiRequest{Ask: "resume", Session: l.Entity.String(), After: ptr(uint64(1))})
	other.expectFrame("replayed")
	tell := func(l subject.Log, seq uint64, text string) {
		e, err := event.New(l, unique(), "test", time.Now(), event.CommandRefusedData{Code: "INPUT_ANSWERED", Message: text})
		require.NoError(t, err)
		e.Sequence = seq
		b, err := json.Marshal(e)
		require.NoError(t, err)
		require.NoError(t, r.conn.NATS().Publish(to, b))
	}
	foreign := l
	foreign.Tenant = mustTenant(t, "globex")
	tell(foreign, 0, "not yours")
	tell(l, 7, "no aside")
	require.NoError(t, r.conn.NATS().Publish(to, []byte("no event")))
	require.NoError(t, r.conn.NATS().Publish(to+"x", []byte("{}")))
	tell(l, 0, "yours")
	s := one.expectFrame("direct")
	require.Equal(t, "en_US", s.Lang)
	require.Contains(t, string(s.Data), "yours")
	stranger := subject.Log{Tenant: l.Tenant, Kind: l.Kind, Entity: id.EntityFromExternal(unique())}
	tell(stranger, 0, "of a session that is not attached")
	require.Equal(t, "zh_CN", one.expectFrame("direct").Lang)
	r.answers(l, "for both")
	one.expectEvents(l, 2, 2)
	other.expectEvents(l, 2, 2)
	one.leave()
	tell(l, 0, "too late")
	r.answers(l, "for one")
	other.expectEvents(l, 3, 3)
}

// directSubject returns the subject on which a service answers a command.
func directSubject(t testing.TB, replyTo string) string {
	t.Helper()
	gateway, connection, err := subject.ParseReplyTo(replyTo)
	require.NoError(t, err)
	return subject.Direct(gateway, connection)
}

func mustTenant(t testing.TB, s string) id.Tenant {
	t.Helper()
	tn, err := id.ParseTenant(s)
	require.NoError(t, err)
	return tn
}

// The state of a session, and a session made of a state.
func TestStates(t *testing.T) {
	r, o := startMulti(t)
	l := r.session("default", "one")
	c, link := r.dialMulti()
	c.ask(multiRequest{Ask: "export", Session: l.Entity.String(), Max: 7})
	s := c.expectFrame("exported")
	require.JSONEq(t, `{"max":7,"history":true}`, string(s.Data))
	require.Equal(t, link, s.Link)
	require.Zero(t, r.metric("waggle_gateway_sessions"), "an export attaches nothing")

	c.ask(multiRequest{Ask: "import", Signed: json.RawMessage(`{"session":7}`)})
	s = c.expectFrame("refused")
	require.Equal(t, "STATE_TAMPERED", s.Code)
	require.Equal(t, "reconnect_with_state", s.Action)
	o.restored = true
	signed, err := json.Marshal(map[string]any{"session": l.Entity})
	require.NoError(t, err)
	c.ask(multiRequest{Ask: "import", Signed: signed, After: ptr(uint64(99))}) // a position of its former life
	c.expectEvents(l, 1, 2)
	require.EqualValues(t, 2, c.expectFrame("replayed").Count)
	o.mu.Lock()
	o.restored = false
	o.mu.Unlock()
	c.ask(multiRequest{Ask: "import", Signed: signed, After: ptr(uint64(1))})
	s = c.expectFrame("restored")
	require.Equal(t, l.Entity.String(), s.Session, "clients take the session's id from it")
	require.Equal(t, link, s.Link)
	c.expectEvents(l, 2, 2)
	require.EqualValues(t, 1, c.expectFrame("replayed").Count)
}

// A state larger than the queue comes all the same, and after it what comes after it.
func TestStateLargerThanTheQueue(t *testing.T) {
	r, o := startMulti(t, func(c *gateway.Config, _ *gateway.Deps) { c.QueueBytes = 2000 })
	_ = o
	l := r.session("default")
	c, _ := r.dialMulti()
	for i := range 30 {
		c.ask(multiRequest{Ask: "export", Session: l.Entity.String(), Max: i + 1})
	}
	for i := range 30 {
		require.JSONEq(t, fmt.Sprintf(`{"max":%d,"history":true}`, i+1), string(c.expectFrame("exported").Data))
	}
}

// Without a session service a frame is refused, with a word to try again, and the
// socket stays open.
func TestSessionServiceThatIsDown(t *testing.T) {
	t.Parallel()
	r, o := startMulti(t)
	l := r.session("default", "one")
	c, _ := r.dialMulti()
	o.srv.Stop()
	c.ask(multiRequest{Ask: "ack", Session: l.Entity.String(), After: ptr(uint64(1))})
	for _, ask := range []string{"resume", "act", "export", "import"} {
		c.ask(multiRequest{Ask: ask, Session: l.Entity.String(), Text: "x", After: ptr(uint64(1)), Signed: json.RawMessage(`{}`)})
		s := c.expectFrame("refused")
		require.Equal(t, "BUS_UNAVAILABLE", s.Code)
		require.Contains(t, s.Text, "try again")
	}
	o.serve()
	c.ask(multiRequest{Ask: "resume", Session: l.Entity.String(), After: ptr(uint64(0))})
	c.expectEvents(l, 1, 2)
	c.expectFrame("replayed")
}

// A socket holds so many sessions and no more; those that it has can still be used.
func TestSessionsPerSocket(t *testing.T) {
	r, _ := startMulti(t, func(c *gateway.Config, _ *gateway.Deps) { c.SessionsPerSocket = 2 })
	extra := r.session("default")
	c, _ := r.dialMulti()
	a, _ := c.openSession(r, multiRequest{})
	b, _ := c.openSession(r, multiRequest{})
	for _, ask := range []multiRequest{{Ask: "open"}, {Ask: "resume", Session: extra.Entity.String()}, {Ask: "act", Session: extra.Entity.String(), Text: "x"}} {
		c.ask(ask)
		s := c.expectFrame("refused")
		require.Equal(t, "RATE_LIMITED", s.Code)
		require.Contains(t, s.Text, "has 2 sessions")
	}
	for _, l := range []subject.Log{a, b} {
		c.ask(multiRequest{Ask: "resume", Session: l.Entity.String(), After: ptr(uint64(0))})
		c.expectEvents(l, 1, 1)
		c.expectFrame("replayed")
	}
	other, _ := r.dialMulti()
	other.ask(multiRequest{Ask: "resume", Session: extra.Entity.String(), After: ptr(uint64(0))})
	other.expectEvents(extra, 1, 1)
}

// Heartbeats come by the gateway's clock, one for each session with its newest seq,
// or one for a socket that has none.
func TestHeartbeats(t *testing.T) {
	clock := &handClock{now: time.Now()}
	r, _ := startMulti(t, func(c *gateway.Config, d *gateway.Deps) {
		c.PingInterval, c.Heartbeat = 40*time.Millisecond, 30*time.Second // the sweeper looks every 10 ms
		d.Clock = clock.Now
	})
	c, link := r.dialMulti()
	clock.advance(30 * time.Second)
	s := c.expectFrame("heartbeat")
	require.Empty(t, s.Session)
	require.Equal(t, link, s.Link)
	a, _ := c.openSession(r, multiRequest{})
	b, _ := c.openSession(r, multiRequest{})
	r.answers(b, "two", "three")
	c.expectEvents(b, 2, 3)
	for range 3 {
		clock.advance(30 * time.Second)
		got := map[string]uint64{}
		for range 2 {
			s := c.expectFrame("heartbeat")
			got[s.Session] = s.Seq
		}
		require.Equal(t, map[string]uint64{a.Entity.String(): 1, b.Entity.String(): 3}, got)
	}
	clock.advance(29 * time.Second)
	r.answers(a, "two")
	c.expectEvents(a, 2, 2) // and no heartbeat before it
}

// A message that is too long for an event is refused before it is sent.
func TestMessagesThatAreTooLong(t *testing.T) {
	r, _ := startMulti(t)
	c, _ := r.dialMulti()
	l, _ := c.openSession(r, multiRequest{})
	c.ask(multiRequest{Ask: "act", Session: l.Entity.String(), Text: strings.Repeat("x", 170<<10)})
	require.Equal(t, "INVALID_FIELD", c.expectFrame("refused").Code)
	c.ask(multiRequest{Ask: "act", Session: l.Entity.String(), Text: "short"})
	require.JSONEq(t, `{"content":"short","mode":"plan"}`, string(r.nextCommand(l.Entity.String()).Data))
}

// TestARepeatedFrameReachesItsService: the bus drops a command whose id comes again. A frame with the id of an earlier one is
// the same command, and the bus does not drop it: its service answers it again.
func TestARepeatedFrameReachesItsService(t *testing.T) {
	r, _ := withMyAgent(t)
	l := r.session("default")
	name := l.Entity.String()
	c := r.dial("")
	c.framed("system.connected")
	for _, frame := range []string{
		`"user.solve_tasks" "content":{"tasks":[{"id":"one","title":"one"}]}`, `"user.restart_task" "content":{"task_id":"one"}`,
		`"user.cancel_task" "content":{"task_id":"one"}`, `"user.replan" "content":"more"`,
	} {
		kind, rest, _ := strings.Cut(frame, " ")
		var got []wirecmd.Command
		for range 2 {
			c.asks(strings.Trim(kind, `"`), name, `,"id":"the-same",`+rest)
			got = append(got, r.nextCommand(name))
		}
		require.Equal(t, "the-same the-same", got[0].ID+" "+got[1].ID, kind)
		require.Equal(t, got[0].Data, got[1].Data, kind)
		require.NotEqual(t, got[0].DedupeID(), got[1].DedupeID(), kind)
	}
}
