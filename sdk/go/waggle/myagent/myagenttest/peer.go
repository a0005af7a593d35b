// Package myagenttest plays a gateway's session socket to clients under test: one
// script a connection.
package myagenttest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/coder/websocket"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/link/linktest"
)

// Session is the id of every session of the peers.
const Session = "s1"

// Peer is the server's end of one connection.
type Peer struct {
	T    testing.TB
	ctx  context.Context //nolint:containedctx // of the connection
	conn *websocket.Conn
}

// Serve runs one script per connection, in order, and then refuses. It returns the URL.
func Serve(t testing.TB, scripts ...func(p *Peer)) string {
	t.Helper()
	return linktest.Serve(t, func(c linktest.Conn) *Peer { return &Peer{t, c.Ctx, c.Conn} }, scripts...) + "/ws/session"
}

// Send sends a frame of the session.
func (p *Peer) Send(f myagent.Frame) {
	f.SessionID = Session
	if f.Metadata == nil {
		f.Metadata = struct{}{}
	}
	b, err := f.Encode()
	if err == nil {
		err = p.conn.Write(p.ctx, websocket.MessageText, b)
	}
	if err != nil {
		p.T.Errorf("send %s: %v", f.Event, err)
	}
}

// In is a frame of the client.
type In struct {
	Event       string          `json:"event"`
	SessionID   string          `json:"session_id"`
	StepID      string          `json:"step_id"`
	Content     json.RawMessage `json:"content"`
	SignedState json.RawMessage `json:"signed_state"`
	Metadata    struct {
		MessageID   string `json:"message_id"`
		ConfirmPlan *bool  `json:"confirm_plan"`
		LastSeq     uint64 `json:"last_seq"`
	} `json:"metadata"`
}

// Read returns the client's next frame other than an acknowledgement.
func (p *Peer) Read() In {
	for {
		_, b, err := p.conn.Read(p.ctx)
		var in In
		if err == nil {
			err = json.Unmarshal(b, &in)
		}
		if err != nil {
			p.T.Errorf("read: %v", err)
			return in
		}
		if in.Event != myagent.UserAck {
			return in
		}
	}
}

// Create answers a request for a session with the session's first event.
func (p *Peer) Create() In {
	in := p.Read()
	p.Send(myagent.Frame{Event: myagent.SystemConnected})
	p.Send(myagent.Frame{Event: myagent.AgentSessionCreated, Seq: 1, EventID: "1.1"})
	return in
}

// Replayed ends a replay.
func (p *Peer) Replayed() {
	p.Send(myagent.Frame{Event: myagent.SystemNotice, Metadata: myagent.NoticeMeta{Action: myagent.ActionReplay}})
}

// Until waits for the client to leave.
func (p *Peer) Until() websocket.StatusCode {
	for {
		if _, _, err := p.conn.Read(p.ctx); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// Leave closes the connection with the code.
func (p *Peer) Leave(code websocket.StatusCode) { _ = p.conn.Close(code, "") }
