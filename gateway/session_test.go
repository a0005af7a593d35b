package gateway_test

import (
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
	require.JSONEq(t, `{"type":"about:blank","title":"INVALID_FIELD","status":422,"detail":"deltas must be true or false.","field":"deltas"}`, body)
}
