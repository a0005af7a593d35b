package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// nonsense is a frame that is answered at once. Any frame before its answer answers another
// request.
const nonsense = `{"event":"user.nothing"}`

// Acknowledgements are never answered, whatever they contain: a console sends five each second.
func TestAcksAreNeverAnswered(t *testing.T) {
	a := authenticated(key("alice", "acme"), key("bob", "globex"))
	r, o := withMyAgent(t, a, unlimited)
	foreign := r.session("globex", "secret").Entity.String()
	c := r.dial("", bearer("alice")...)
	c.framed("system.connected")
	acks := []string{
		`"content":{"last_seq":3}`, `"content":{"last_event_id":null}`, `"content":null`, `"content":{"last_seq":-1}`, `"content":"x"`, `"metadata":7`,
		`"content":{"last_event_id":"9b2c1f00-0000-4000-8000-000000000000-41"}`, `"content":{"last_event_id":"41.7"}`,
		`"session_id":"a b","content":{"last_seq":1}`, `"session_id":"nobody","content":{"last_seq":1}`,
		`"content":{"last_event_id":"` + foreign + `-2"}`, `"session_id":"` + foreign + `","content":{"last_seq":1}`,
	}
	quiet := func() {
		t.Helper()
		for _, ack := range acks {
			c.write(text(`{"event":"user.ack",` + ack + `}`))
		}
		c.write(text(nonsense))
		c.framed("error.validation")
	}
	quiet()
	asked := len(o.attaches())
	quiet()
	require.Len(t, o.attaches(), asked, "a session that is not there is not asked for with every ack")
	require.EqualValues(t, 2*len(acks), r.metric("waggle_gateway_acks_dropped_total"))
	for range 2 { // sessions: last_seq alone cannot be placed any more
		c.write(text(`{"event":"user.create_session"}`))
		c.framed("agent.session_created")
		quiet()
	}
}

// Acknowledgements do not use up the rate of messages, and those over their own rate are not
// answered.
func TestAcksBesideTheRate(t *testing.T) {
	r, _ := withMyAgent(t, func(c *gateway.Config, _ *gateway.Deps) { c.MessageRate, c.MessageBurst = 0.001, 3 })
	c := r.dial("")
	c.framed("system.connected")
	for range 20 {
		c.write(text(`{"event":"user.ack","content":{"last_seq":3}}`))
	}
	for range 3 {
		c.write(text(nonsense))
		c.framed("error.validation")
	}
	c.write(text(nonsense))
	c.framed("error.rate_limited")
}

// An ack on a fresh socket, with nothing but the event_id of the last frame, resumes the
// session after it.
func TestAnAckResumesItsSession(t *testing.T) {
	r, _ := withMyAgent(t)
	l := r.session("default", "two", "three", "four")
	other := r.session("default", "two", "three")
	c := r.dial("")
	c.framed("system.connected")
	c.asks("user.reconnect", l.Entity.String(), `,"last_seq":1`)
	seen := c.framed("agent.final_answer")
	require.Equal(t, l.Entity.String()+"-2", strings.Split(seen.EventID, ".")[0])
	c.leave()

	c = r.dial("")
	c.framed("system.connected")
	for _, id := range []string{seen.EventID, other.Entity.String() + "-2"} {
		c.write(text(fmt.Sprintf(`{"event":"user.ack","content":{"last_event_id":%q}}`, id)))
	}
	var got []string
	for range 3 {
		f := c.framed("agent.final_answer")
		got = append(got, fmt.Sprintf("%s-%d", f.SessionID, f.Seq))
	}
	require.ElementsMatch(t, []string{l.Entity.String() + "-3", l.Entity.String() + "-4", other.Entity.String() + "-3"}, got)
	c.write(text(nonsense))
	c.framed("error.validation")
	r.answers(l, "live")
	require.EqualValues(t, 5, c.framed("agent.final_answer").Seq)
}

// A text comes in deltas: none is lost, doubled or late.
func TestDeltasOfAnAnswer(t *testing.T) {
	t.Parallel()
	r, _ := withMyAgent(t)
	l := r.session("default")
	session := l.Entity.String()
	c := r.dial("")
	c.framed("system.connected")
	c.asks("user.reconnect", session, `,"last_seq":1`)
	c.framed("system.notice")
	read := func(c *client, from, to uint64) string {
		t.Helper()
		var b strings.Builder
		for next := from; next <= to; {
			f := c.framed("agent.partial_answer")
			first := max(f.Metadata.MergedFrom, 0)
			if first == 0 {
				first = f.Seq
			}
			require.Equal(t, next, first)
			b.WriteString(strings.Trim(string(f.Content), `"`))
			next = f.Seq + 1
		}
		return b.String()
	}
	whole := r.deltas(l, "m", 100)
	require.Equal(t, whole, read(c, 2, 101), "the last piece comes without anything that follows it")
	more := r.deltas(l, "n", 5)
	r.answers(l, "end")
	require.Equal(t, more, read(c, 102, 106), "what is written comes before what follows it")
	c.framed("agent.final_answer")
	c = r.dial("deltas=none")
	c.framed("system.connected")
	c.asks("user.reconnect", session, `,"last_seq":1`)
	require.EqualValues(t, 107, c.framed("agent.final_answer").Seq)
	require.EqualValues(t, 107, c.framed("system.notice").Metadata.LastSeq)
	c.asks("user.reconnect", session, `,"content":{"last_seq":1,"batch":true}`)
	c.framed("system.notice")
	require.EqualValues(t, 107, c.framed("system.notice").Metadata.LastSeq)
}

// A message is shown to all but the socket that it came from, unless that wants it.
func TestEcho(t *testing.T) {
	r, _ := withMyAgent(t)
	c, other, all := r.dial(""), r.dial(""), r.dial("echo=true")
	for _, c := range []*client{c, other, all} {
		c.framed("system.connected")
	}
	c.write(text(`{"event":"user.create_session"}`))
	created := c.framed("agent.session_created")
	l := r.session("default")
	l.Entity = id.EntityFromExternal(created.SessionID)
	for _, c := range []*client{other, all} {
		c.asks("user.reconnect", created.SessionID, `,"last_seq":1`)
		c.framed("system.notice")
	}
	for _, from := range []*client{c, all} {
		from.asks("user.message", created.SessionID, `,"content":"hello"`)
		said := r.nextCommand(created.SessionID)
		if said.Verb == wirecmd.Open {
			said = r.nextCommand(created.SessionID)
		}
		require.NoError(t, r.append(l, unique(), event.MessageReceivedData{RunSpec: event.RunSpec{Mode: event.ModePlan}, MessageID: said.ID, RunID: "r", Content: "hello"}))
		for _, to := range []*client{c, other, all} {
			if to != c || from != c {
				to.framed("user.message")
			}
		}
	}
	r.answers(l, "end")
	for _, c := range []*client{c, other, all} {
		require.EqualValues(t, 4, c.framed("agent.final_answer").Seq)
	}
	wrong := r.dial("echo=maybe")
	require.Equal(t, "ERR_VAL_001", wrong.framed("error.validation").Metadata.ErrorCode)
}

// The language of texts is that of the query, else the one that a browser is set to, else
// that of the installation.
func TestLanguages(t *testing.T) {
	r, _ := withMyAgent(t)
	for _, c := range []struct{ query, header, want string }{
		{"", "", "已连接到服务器"},
		{"", "tlh, *;q=0.1", "已连接到服务器"},
		{"", "x;;;", "已连接到服务器"},
		{"", "en-GB,en;q=0.9", "Connected to the server"},
		{"", "de, zh-TW;q=0.4, en;q=0.7", "Connected to the server"},
		{"", "de, zh-TW;q=0.7, en;q=0", "已连接到服务器"},
		{"language=zh_CN", "en", "已连接到服务器"},
		{"language=en", "zh", "Connected to the server"},
	} {
		s := r.dial(c.query, "Accept-Language", c.header)
		b, err := s.text()
		require.NoError(t, err)
		require.Contains(t, string(b), c.want, "%v", c)
		s.leave()
	}
}
