package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway"
	"github.com/waggle-dev/waggle/internal/strictjson/hostile"
	wirecmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func unlimited(c *gateway.Config, _ *gateway.Deps) { c.MessageRate, c.MessageBurst = 1e6, 1e6 }

// Every hostile document gives one error frame and leaves the socket open; only bytes that are
// not text end it. None becomes a command.
func TestHostileDocuments(t *testing.T) {
	r := start(t, unlimited)
	check := r.bystander()
	settled := r.settled()
	documents := hostile.Documents()
	require.GreaterOrEqual(t, len(documents), 300)

	c, session := fresh(r)
	refused, ended, legal := 0, 0, 0
	for i, d := range documents {
		c.write(frame(fin|opText, d.Body))
		if d.Code == fault.BadUTF8 {
			c.closes(1007)
			ended++
			c, session = fresh(r)
			continue
		}
		marker := fmt.Sprintf("after-%d", i)
		c.write(text(kind(marker)))
		frames := 0
		for {
			s := c.must("error")
			if strings.Contains(s.Data.Message, `"`+marker+`"`) {
				break
			}
			frames++
			if !d.Legal {
				require.EqualValues(t, fault.BadJSON, s.Data.Code, d.Name)
			}
		}
		if d.Legal {
			require.LessOrEqual(t, frames, 1, d.Name)
			legal++
			continue
		}
		require.Equal(t, 1, frames, d.Name)
		refused++
	}
	for len(r.inbox(session)) > 0 {
		require.Contains(t, []id.Name{wirecmd.Open, wirecmd.SendMessage, wirecmd.Cancel}, r.nextCommand(session).Verb)
	}
	check()
	_ = c.Conn.Close()
	settled()
	t.Logf("%d documents: %d refused with the socket open, %d ended it, %d were legal", len(documents), refused, ended, legal)
}

// fresh returns a socket with a session, which its first message has made.
func fresh(r *rig) (*client, string) {
	c := r.dial("")
	session := c.ready()
	c.begin(r, session)
	return c, session
}

// begin sends the first message of a session and returns the command that makes the session.
func (c *client) begin(r *rig, session string) wirecmd.Command {
	c.write(message("first"))
	open := r.nextCommand(session)
	require.Equal(c.t, wirecmd.Open, open.Verb)
	require.Equal(c.t, wirecmd.SendMessage, r.nextCommand(session).Verb)
	return open
}

// awkward are ids that would do harm if they became part of a subject.
func awkward() []string {
	return []string{
		"*", ">", ".", "..", "a.b", "a.*", "a.>", ">.a", "default.session.x", "$JS.API.STREAM.DELETE.EVT_00", "_INBOX.x",
		"evt.>", "\x00", "a\x00b", "a b", "a\tb", "a\r\nb", "\u202e", "日本", "é", "../x", "/etc/passwd", "%2e%2e",
		"-", "_", "h_abc", "'", `"`, `\`, "<script>", strings.Repeat("x", 129), strings.Repeat("x", 10<<10), strings.Repeat("*", 10<<10),
	}
}

// A malformed id names a session that does not exist.
func TestAwkwardSessionIDs(t *testing.T) {
	r := start(t)
	check := r.bystander()
	settled := r.settled()
	for _, s := range awkward() {
		query := "session=" + url.QueryEscape(s)
		if len(s) > 1000 {
			query = "session=" + s // legal as it is, and within the limit of a header
		}
		for _, q := range []string{query, query + "&after=0", query + "&session=second"} {
			c := r.dial(q)
			require.Equal(t, "SESSION_NOT_FOUND", c.must("error").Data.Code, "%.40q", s)
			c.closes(4404)
		}
	}
	for _, raw := range []string{"session=%00", "session=%ff%fe", "session=%", "session=%2", "session=;", "%00=%00", "session=a&after=%00"} {
		c, status, _ := r.handshake(raw)
		if status == 101 { // a query that cannot be read has no session
			_, err := c.next()
			require.NoError(t, err)
		}
		_ = c.Conn.Close()
	}
	check()
	settled()
}

// A message's id becomes the command's id only if it is one.
func TestAwkwardMessageIDs(t *testing.T) {
	r := start(t, unlimited)
	check := r.bystander()
	c, session := fresh(r)
	for i, s := range append(awkward(), "fine-1") {
		content := fmt.Sprintf("message %d", i)
		b, err := json.Marshal(map[string]string{"type": "user_message", "id": s, "content": content})
		require.NoError(t, err)
		c.write(frame(fin|opText, b))
		got := r.nextCommand(session)
		var m wirecmd.UserMessage
		require.NoError(t, got.Decode(&m))
		require.Equal(t, content, m.Content)
		require.Equal(t, id.EntityFromExternal(s).String(), got.ID)
		_, err = subject.DefaultPartitions.ParseCommand(subject.DefaultPartitions.Command(got.Address()))
		require.NoError(t, err, "%.40q", s)
		_, err = id.ParseEntity(got.ID)
		require.NoError(t, err, "%.40q", s)
	}
	for _, body := range []string{
		`{"type":"user_message","content":"x","id":1}`, `{"type":"user_message","content":"x","id":""}`,
		`{"type":"user_message","content":"x","id":{}}`, `{"type":"user_message","content":"x","id":["a"]}`,
	} {
		c.write(text(body))
		c.refused("INVALID_FIELD")
	}
	check()
}
