package chat

import (
	"context"
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/waggle-dev/waggle/proto-schemas/orbit"
	"github.com/waggle-dev/waggle/sdk/go/link/linktest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

// peer is the server's end of one connection.
type peer struct {
	t     testing.TB
	ctx   context.Context //nolint:containedctx // of the connection
	conn  *websocket.Conn
	query url.Values
	token string
}

// serve runs one script per connection, in order, and then refuses.
func serve(t testing.TB, scripts ...func(p *peer)) string {
	t.Helper()
	return linktest.Serve(t, func(c linktest.Conn) *peer {
		return &peer{t, c.Ctx, c.Conn, c.Request.URL.Query(), c.Request.Header.Get("Authorization")}
	}, scripts...) + "/ws"
}

func (p *peer) send(kind string, seq uint64, execution string, data any) {
	f := orbit.Frame[any]{Type: kind, Seq: seq, Data: data}
	f.Timestamp.Time = time.Unix(0, 0)
	if execution != "" {
		e := orbit.ExecutionID(execution)
		f.ExecutionID = &e
	}
	b, err := f.Encode()
	if err == nil {
		err = p.conn.Write(p.ctx, websocket.MessageText, b)
	}
	if err != nil {
		p.t.Errorf("send %s: %v", kind, err)
	}
}

func (p *peer) greet(session string, last uint64) {
	p.send(orbit.AgentStart, 0, "", orbit.MessageData{Message: orbit.StartText})
	p.send(orbit.AgentReady, 0, "", orbit.ReadyData{Message: orbit.ReadyText, SessionID: session, LastSeq: last})
}

func (p *peer) read() map[string]any {
	_, b, err := p.conn.Read(p.ctx)
	if err != nil {
		p.t.Errorf("read: %v", err)
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		p.t.Errorf("read: %v", err)
	}
	return m
}

// until waits for the client to leave.
func (p *peer) until() websocket.StatusCode {
	_, _, err := p.conn.Read(p.ctx)
	return websocket.CloseStatus(err)
}

func (p *peer) leave(code websocket.StatusCode) { _ = p.conn.Close(code, "") }

func (p *peer) echo(seq uint64, exec, text string) {
	p.send(orbit.UserInput, seq, exec, orbit.MessageData{Message: text})
	p.send(orbit.AgentThinking, seq+1, exec, orbit.MessageData{Message: orbit.ThinkingText})
}

func (p *peer) delta(seq uint64, exec, message, text string) {
	p.send(orbit.AgentDelta, seq, exec, orbit.DeltaData{MessageID: message, Text: text})
}

func (p *peer) answer(seq uint64, exec, text string) {
	p.send(orbit.AgentResponse, seq, exec, orbit.ResponseData{Message: text, ExecutionCompleted: true})
}

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
