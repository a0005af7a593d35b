package gateway_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// remove ends a session's log with its tombstone, as the session service does.
func (r *rig) remove(l subject.Log) {
	r.t.Helper()
	require.NoError(r.t, r.append(l, unique(), event.SessionDeletedData{Reason: "user_request"}))
}

// removed reads until the socket is closed, which has to be because of the deletion.
func (c *client) removed() (frames int) {
	c.t.Helper()
	var last shown
	for {
		s, err := c.next()
		if err == nil {
			last, frames = s, frames+1
			continue
		}
		var closed closedError
		require.True(c.t, errors.As(err, &closed), "%v", err)
		require.Equal(c.t, 4410, closed.code, closed.reason)
		require.Equal(c.t, "SESSION_DELETED", closed.reason)
		require.Equal(c.t, "SESSION_DELETED", last.Data.Code, "the last frame says why")
		_ = c.Conn.Close()
		return frames
	}
}

// Every socket that shows a deleted session ends, whether it is live, behind, or comes
// later with any position. Another tenant's socket learns nothing of it.
func TestADeletedSessionClosesItsSockets(t *testing.T) {
	r := start(t, unlimited, authenticated(key("alice", "acme"), key("bob", "globex")))
	l := r.session("acme", "one", "two")
	query := "session=" + l.Entity.String()
	left := r.settled()
	live := r.dial(query, bearer("alice")...)
	live.ready()
	behind := r.dial(query+"&after=0", bearer("alice")...) // reads nothing for now
	for range 200 {
		r.answers(l, strings.Repeat("x", 60<<10))
	}
	require.Equal(t, strings.Repeat("x", 60<<10), live.must("agent_response").Data.Message)
	r.remove(l)
	require.LessOrEqual(t, behind.removed(), 2+2+200+1)
	live.removed()
	for _, after := range []string{"", "&after=0", "&after=2", "&after=203", "&after=9999"} {
		require.Equal(t, 1, r.dial(query+after, bearer("alice")...).removed(), after)
	}
	require.Equal(t, 1, r.dial("watch=session/"+l.Entity.String(), bearer("alice")...).removed())
	foreign, none := r.dial(query+"&after=2", bearer("bob")...), r.dial("session=nobody&after=2", bearer("bob")...)
	is, want := foreign.must("error"), none.must("error")
	require.Equal(t, want, is, "the deleted session of another tenant differs from an unknown one")
	foreign.closes(4404)
	none.closes(4404)
	left()
}

// A socket that holds several sessions is shown the end of one, and continues with the
// others.
func TestOtherSessionsOfASocketGoOn(t *testing.T) {
	r, _ := startMulti(t)
	c, _ := r.dialMulti()
	doomed, _ := c.openSession(r, multiRequest{})
	other, _ := c.openSession(r, multiRequest{})
	r.remove(doomed)
	s := c.expectFrame("event")
	require.Equal(t, wire.AgentSessionEnd, s.Type)
	require.Equal(t, doomed.Entity.String(), s.Session)
	eventually(t, "the session is gone from the socket", func() bool { return r.metric("waggle_gateway_sessions") == 1 })
	for _, ask := range []string{"act", "resume", "export"} {
		c.ask(multiRequest{Ask: ask, Session: doomed.Entity.String(), Text: "hello?", After: ptr(uint64(1))})
		require.Equal(t, "SESSION_DELETED", c.expectFrame("refused").Code, ask)
	}
	require.Empty(t, r.inbox(doomed.Entity.String()), "nothing is sent to it any more")
	r.answers(other, "still here")
	require.Equal(t, other.Entity.String(), c.expectFrame("event").Session)
	c.leave()
}
