package gateway_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
)

func TestNewSession(t *testing.T) {
	r := start(t)
	c := r.dial("")
	session := c.ready()
	require.Empty(t, r.inbox(session), "a socket is no session")

	c.write(text(`{"type":"user_message","content":"one","id":"m-1"}`))
	open := r.nextCommand(session)
	require.Equal(t, wirecmd.Open, open.Verb)
	require.JSONEq(t, `{"dialect":"orbit"}`, string(open.Data))
	require.Equal(t, "anonymous", open.Principal)
	c.write(text(`{"type":"user_message","data":{"content":"two"}}`))
	first, second := r.nextCommand(session), r.nextCommand(session)
	require.Equal(t, "m-1", first.ID)
	require.JSONEq(t, `{"content":"one"}`, string(first.Data))
	require.JSONEq(t, `{"content":"two"}`, string(second.Data))
	require.NotEmpty(t, second.ID)
	require.Equal(t, wirecmd.SendMessage, second.Verb)
	require.Contains(t, second.Source, "waggle/gateway/")
	c.leave()
}

func TestOrderOfMessagesIsKept(t *testing.T) {
	r := start(t)
	c := r.dial("")
	session := c.ready()
	for i := range 40 {
		c.write(message(string(rune('a' + i%26))))
	}
	require.Equal(t, wirecmd.Open, r.nextCommand(session).Verb)
	for i := range 40 {
		var m wirecmd.UserMessage
		require.NoError(t, json.Unmarshal(r.nextCommand(session).Data, &m))
		require.Equal(t, string(rune('a'+i%26)), m.Content, "message %d", i)
	}
}

func TestResume(t *testing.T) {
	r := start(t)
	l := r.session("default", "one", "two", "three") // seq 2, 3, 4
	query := "session=" + l.Entity.String()

	all := r.dial(query + "&after=0")
	all.ready()
	for i, want := range []string{"one", "two", "three"} {
		got := all.must("agent_response")
		require.Equal(t, want, got.Data.Message)
		require.EqualValues(t, i+2, got.Seq)
	}
	some := r.dial(query + "&after=3")
	some.ready()
	require.Equal(t, "three", some.must("agent_response").Data.Message)

	live := r.dial(query)
	live.must("agent_start")
	require.EqualValues(t, 4, live.must("agent_ready").Data.LastSeq)
	r.answers(l, "four")
	for _, c := range []*client{all, some, live} {
		require.Equal(t, "four", c.must("agent_response").Data.Message)
		c.leave()
	}
}

func TestSessionsThatCannotBeShown(t *testing.T) {
	r := start(t)
	l := r.session("default", "one")
	for query, want := range map[string]struct {
		fault string
		code  int
	}{
		"session=nobody":         {"SESSION_NOT_FOUND", 4404},
		"session=nobody&after=1": {"SESSION_NOT_FOUND", 4404},
		"session=":               {"SESSION_NOT_FOUND", 4404},
		"session=" + l.Entity.String() + "&after=99":  {"CURSOR_INVALID", 4422},
		"session=" + l.Entity.String() + "&after=-1":  {"CURSOR_INVALID", 4422},
		"session=" + l.Entity.String() + "&after=x":   {"CURSOR_INVALID", 4422},
		"session=" + l.Entity.String() + "&after=":    {"CURSOR_INVALID", 4422},
		"session=" + l.Entity.String() + "&after=1.x": {"CURSOR_INVALID", 4422},
		"after=1": {"CURSOR_INVALID", 4422},
	} {
		t.Run(query, func(t *testing.T) {
			c := r.dial(query)
			require.Equal(t, want.fault, c.must("error").Data.Code)
			c.closes(want.code)
		})
	}
}

func TestBadParameterIsAProblem(t *testing.T) {
	r := start(t)
	_, status, body := r.handshake("deltas=perhaps")
	require.Equal(t, 422, status)
	require.JSONEq(t, `{"type":"about:blank","title":"INVALID_FIELD","status":422,"detail":"deltas is true or false.","field":"deltas"}`, body)
}
