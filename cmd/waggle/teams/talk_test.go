package teams

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/cmd/waggle/chat"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/sdk/go/link/linktest"
	"github.com/waggle-dev/waggle/sdk/go/waggle/team"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

// peer is the server's end of one connection.
type peer struct {
	t     testing.TB
	ctx   context.Context //nolint:containedctx // of the connection
	conn  *websocket.Conn
	path  string
	query url.Values
	token string
}

// serve runs one script per connection, in order, and then refuses.
func serve(t testing.TB, scripts ...func(p *peer)) string {
	t.Helper()
	return linktest.Serve(t, func(c linktest.Conn) *peer {
		return &peer{t, c.Ctx, c.Conn, c.Request.URL.Path, c.Request.URL.Query(), c.Request.Header.Get("Authorization")}
	}, scripts...) + "/ws"
}

func (p *peer) send(raw ...string) {
	for _, r := range raw {
		assert.NoError(p.t, p.conn.Write(p.ctx, websocket.MessageText, []byte(r)))
	}
}

func (p *peer) replay(frames []team.Frame) {
	for _, f := range frames {
		p.send(string(f.Raw))
	}
}

type sent struct {
	Type    string
	Payload map[string]any
}

func (p *peer) read() sent {
	_, b, err := p.conn.Read(p.ctx)
	assert.NoError(p.t, err)
	var s sent
	assert.NoError(p.t, json.Unmarshal(b, &s))
	return s
}

func (p *peer) until() {
	for {
		if _, _, err := p.conn.Read(p.ctx); err != nil {
			return
		}
	}
}

const greeting = `{"type":"CONNECTED","payload":{"team_id":"team_1","session_id":"s"}}`

// at is a frame with a position.
func at(position uint64, kind, payload string) string {
	return fmt.Sprintf(`{"type":%q,"payload":{%s,"team_stream_event_envelope":{"sequence":%d}}}`, kind, payload, position)
}

func running(position uint64) string {
	return at(position, "TEAM_STATUS", `"new_status":"RUNNING","event_scope":"team_scoped"`)
}

func idle(position uint64) string {
	return at(position, "TEAM_STATUS", `"new_status":"IDLE","event_scope":"team_scoped"`)
}

// accepted says that the team has the message that was sent.
func accepted(position uint64, s sent) string {
	return at(position, "MESSAGE_ACCEPTED", fmt.Sprintf(`"message_id":%q,"target_member_name":"Lead","event_scope":"team_scoped"`, s.Payload["message_id"]))
}

func asks(position uint64, call string) string {
	return at(position, "TOOL_APPROVAL_REQUESTED", fmt.Sprintf(
		`"invocation_id":%q,"tool_name":"rm","arguments":{"path":"x"},"member_route_key":"library/Reader","approval_token":{"digest":"d"}`, call))
}

// talkTo runs a team that a test has made.
func talkTo(t testing.TB, opt Options, input string) (out, notes string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	opt.Team = research
	var said, remarks bytes.Buffer
	err = Talk(ctx, opt, chat.Piped(strings.NewReader(input)), terminal.NewScreen(&said, &remarks))
	return said.String(), remarks.String(), err
}

// TestEveryFrameIsShownOnce: connections break in the middle of a text; repeated frames, and those
// sent meanwhile, are shown exactly once.
func TestEveryFrameIsShownOnce(t *testing.T) {
	all := frames(t, "testdata/run.jsonl")
	whole, _, err := talkTo(t, Options{Text: "go", All: true, Yes: true, URL: serve(t, func(p *peer) {
		mine := accepted(55, p.greet(all[0].Raw))
		p.replay(all[1:5])
		p.send(mine)
		p.replay(all[5:])
		p.until()
	})}, "")
	require.ErrorIs(t, err, chat.ErrNoAnswer)
	require.Contains(t, whole, "library/Reader: Let me look at it.\n")

	cut := 12 // the text of the first message has begun
	id := make(chan any, 2)
	broken, _, err := talkTo(t, Options{Text: "go", All: true, Yes: true, URL: serve(
		t, func(p *peer) {
			assert.Equal(t, "/ws/agent-team/team_1", p.path)
			assert.Equal(t, "0", p.query.Get("after"))
			id <- p.greet(all[0].Raw).Payload["message_id"]
			_ = p.conn.CloseNow()
		}, func(p *peer) {
			assert.Equal(t, "0", p.query.Get("after"), "nothing has been seen")
			said := p.greet(all[0].Raw)
			id <- said.Payload["message_id"]
			p.replay(all[1:5])
			p.send(accepted(55, said))
			p.replay(all[5:cut])
			_ = p.conn.Close(websocket.StatusGoingAway, "")
		}, func(p *peer) {
			assert.Equal(t, fmt.Sprint(all[cut-1].Payload.Envelope.Sequence), p.query.Get("after"))
			p.send(string(all[0].Raw), string(all[1].Raw))
			p.replay(all[cut-2:]) // two frames again
			p.until()
		})}, "")
	require.ErrorIs(t, err, chat.ErrNoAnswer)
	require.Equal(t, <-id, <-id, "the message is the same, however often it is sent")
	require.Equal(t, whole, broken)
}

// greet greets and reads what the client has to say.
func (p *peer) greet(greeting []byte) sent {
	p.send(string(greeting))
	return p.read()
}

func TestToolsAreDecidedOn(t *testing.T) {
	decisions := make(chan sent, 3)
	script := func(p *peer) {
		said := p.greet([]byte(greeting))
		assert.Equal(t, "SEND_MESSAGE", said.Type)
		p.send(accepted(15, said), running(31), asks(47, "c1"), asks(63, "c2"))
		for range 2 {
			d := p.read()
			decisions <- d
			p.send(at(79, "TOOL_APPROVED", fmt.Sprintf(`"invocation_id":%q,"tool_name":"rm","member_route_key":"library/Reader"`, d.Payload["invocation_id"])))
		}
		p.send(idle(95))
		p.until()
	}
	_, notes, err := talkTo(t, Options{Text: "go", Target: "Lead", URL: serve(t, script)}, "what?\ny\nn too  risky\n")
	require.NoError(t, err)
	require.Contains(t, notes, `May library/Reader run rm {"path":"x"} ? y, n WHY`)
	first, second := <-decisions, <-decisions
	require.Equal(t, "APPROVE_TOOL", first.Type)
	require.Equal(t, map[string]any{
		"invocation_id": "c1", "agent_name": "library/Reader",
		"approval_token": map[string]any{"digest": event.CallDigest("rm", json.RawMessage(`{"path":"x"}`))}, // of the call shown, not the token's
	}, first.Payload)
	require.Equal(t, "DENY_TOOL", second.Type)
	require.Equal(t, "c2", second.Payload["invocation_id"])
	require.Equal(t, "too  risky", second.Payload["reason"])

	_, notes, err = talkTo(t, Options{Text: "go", Yes: true, URL: serve(t, script)}, "")
	require.NoError(t, err)
	require.NotContains(t, notes, "May ")
	require.Equal(t, []string{"APPROVE_TOOL", "APPROVE_TOOL"}, []string{(<-decisions).Type, (<-decisions).Type})
}

func TestAnApprovalExpires(t *testing.T) {
	_, _, err := talkTo(t, Options{Text: "go", URL: serve(t, func(p *peer) {
		p.send(accepted(15, p.greet([]byte(greeting))), running(31), asks(47, "c1"))
		p.until()
	})}, "")
	require.ErrorContains(t, err, "waggle teams watch team_1")
}

func TestRefusalsAreErrors(t *testing.T) {
	_, _, err := talkTo(t, Options{Text: "go", URL: serve(t, func(p *peer) {
		p.greet([]byte(greeting))
		p.send(`{"type":"ERROR","payload":{"code":"MEMBER_NOT_FOUND","message":"There is no Bob."}}`)
		p.until()
	})}, "")
	require.ErrorContains(t, err, "There is no Bob. [MEMBER_NOT_FOUND]")

	_, _, err = talkTo(t, Options{URL: serve(t, func(p *peer) {
		p.send(`{"type":"ERROR","payload":{"code":"TEAM_NOT_FOUND","message":"No such team."}}`)
		_ = p.conn.Close(4004, "TEAM_NOT_FOUND")
	})}, "")
	require.ErrorContains(t, err, "No such team.")
}

// TestTheEndIsThatOfTheOwnWork: a message to a busy team does not end with the team's earlier work;
// a message that joins the work ends with it. The greeting's status has no time and does not count.
func TestTheEndIsThatOfTheOwnWork(t *testing.T) {
	says := func(position uint64, text string) string {
		return at(position, "ASSISTANT_COMPLETE", fmt.Sprintf(`"content":%q,"member_route_key":"Lead"`, text))
	}
	later := func(p *peer) {
		p.send(greeting, `{"type":"TEAM_STATUS","payload":{"new_status":"RUNNING","event_scope":"team_scoped"}}`)
		said := p.read()
		p.send(running(31), says(47, "The first."), idle(63), accepted(79, said), running(95), says(111, "The second."), idle(127))
		p.until()
	}
	out, _, err := talkTo(t, Options{Text: "go", URL: serve(t, later)}, "")
	require.NoError(t, err)
	require.Contains(t, out, "The second.")

	meanwhile := func(p *peer) {
		said := p.greet([]byte(greeting))
		p.send(running(31), accepted(47, sent{Payload: map[string]any{"message_id": "of somebody else"}}), accepted(63, said))
		_ = p.conn.Close(websocket.StatusGoingAway, "")
	}
	again := func(p *peer) {
		assert.Equal(t, "63", p.query.Get("after"))
		p.send(greeting, `{"type":"TEAM_STATUS","payload":{"new_status":"IDLE","event_scope":"team_scoped"}}`, says(79, "Both."), idle(95))
		p.until()
	}
	out, _, err = talkTo(t, Options{Text: "go", URL: serve(t, meanwhile, again)}, "")
	require.NoError(t, err)
	require.Contains(t, out, "Both.")
}

// TestNoPositionIsNoGuess: a client of a team that was there before cannot know what it
// has missed if the connection ends before the first frame.
func TestNoPositionIsNoGuess(t *testing.T) {
	_, _, err := talkTo(t, Options{Text: "go", URL: serve(t, func(p *peer) {
		p.greet([]byte(greeting))
		_ = p.conn.CloseNow()
	})}, "")
	require.ErrorContains(t, err, "the answer may be over already")
}

func TestInterruptsStopAndThenLeave(t *testing.T) {
	interrupts := make(chan os.Signal, 2)
	out, _, err := talkTo(t, Options{Text: "go", Interrupts: interrupts, URL: serve(t, func(p *peer) {
		p.send(accepted(15, p.greet([]byte(greeting))), running(31))
		interrupts <- os.Interrupt
		assert.Equal(t, sent{Type: "STOP_GENERATION"}, p.read())
		p.send(idle(47))
		p.until()
	})}, "")
	require.ErrorContains(t, err, "stopped")
	require.Contains(t, out, "research is RUNNING\n")

	_, _, err = talkTo(t, Options{Text: "go", Interrupts: interrupts, URL: serve(t, func(p *peer) {
		p.send(accepted(15, p.greet([]byte(greeting))), running(31))
		interrupts <- os.Interrupt
		p.read()
		interrupts <- os.Interrupt
		p.until()
	})}, "")
	require.ErrorContains(t, err, "may still be working: waggle teams watch team_1")
}

func TestWatchingEndsWithTheTeam(t *testing.T) {
	var raw bytes.Buffer
	out, _, err := talkTo(t, Options{Raw: &raw, URL: serve(t, func(p *peer) {
		assert.Equal(t, "current", p.query.Get("after"))
		assert.Equal(t, "true", p.query.Get("additions"))
		p.send(greeting, running(31), asks(47, "c1"), idle(63), at(79, "TEAM_STATUS", `"new_status":"SHUTTING_DOWN"`))
		p.until()
	})}, "")
	require.NoError(t, err)
	require.Empty(t, out)
	require.Equal(t, 5, strings.Count(raw.String(), "\n"))
}

// typed are the lines of a person, io.EOF for Ctrl-C.
type typed chan string

func (l typed) Read() (string, error) {
	text, ok := <-l
	if !ok || text == "^C" {
		return "", io.EOF
	}
	return text, nil
}

func (typed) Person() bool { return true }

func (typed) Close() error { return nil }

func TestCtrlCInALineStopsToo(t *testing.T) {
	keys := make(typed, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	url := serve(t, func(p *peer) {
		p.send(accepted(15, p.greet([]byte(greeting))), running(31), asks(47, "c1"))
		keys <- "^C"
		assert.Equal(t, "STOP_GENERATION", p.read().Type)
		p.send(at(63, "AGENT_STATUS", `"new_status":"idle","member_route_key":"library/Reader"`), idle(79))
		p.until()
	})
	var said bytes.Buffer
	err := Talk(ctx, Options{URL: url, Team: research, Text: "go"}, keys, terminal.NewScreen(&said, &said))
	close(keys) // the next question was asked already, perhaps
	require.ErrorContains(t, err, "stopped")
}

// TestALateAnswerIsForNothingElse: a line typed for one question does not answer the next one, if
// the first was decided elsewhere meanwhile.
func TestALateAnswerIsForNothingElse(t *testing.T) {
	keys := make(typed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	decided := make(chan sent, 1)
	url := serve(t, func(p *peer) {
		p.send(greeting, asks(47, "c1"), asks(63, "c2"))
		p.send(at(79, "TOOL_DENIED", `"invocation_id":"c1","tool_name":"rm","member_route_key":"library/Reader","by":"bob"`))
		p.send(at(95, "AGENT_STATUS", `"new_status":"tool_denied","member_route_key":"library/Reader"`), running(111))
		decided <- p.read()
		p.send(at(127, "TEAM_STATUS", `"new_status":"SHUTTING_DOWN"`))
		p.until()
	})
	out, in := io.Pipe()
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "is RUNNING") {
				keys <- "n it was for the first"
				keys <- "y"
			}
		}
	}()
	var notes bytes.Buffer
	err := Talk(ctx, Options{URL: url, Team: research}, keys, terminal.NewScreen(in, &notes))
	require.NoError(t, err)
	require.NoError(t, in.Close())
	d := <-decided
	require.Equal(t, "APPROVE_TOOL", d.Type)
	require.Equal(t, "c2", d.Payload["invocation_id"])
	require.Contains(t, notes.String(), "that has been decided meanwhile")
}
