package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// SwarmFrame is one frame of the Agent Swarm Protocol.
type SwarmFrame struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	RequestID string          `json:"requestId"`
	TaskID    string          `json:"taskId"`
	Seq       uint64          `json:"seq"`
	Content   json.RawMessage `json:"content"`
}

// Text returns a member of the content that is a string.
func (f SwarmFrame) Text(name string) string {
	var s string
	_ = json.Unmarshal(f.Member(name), &s) // anything else is no text
	return s
}

// Member returns a member of the content.
func (f SwarmFrame) Member(name string) json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(f.Content, &m) // what is no object has no members
	return m[name]
}

// Peer is a participant of a swarm: a bare socket that keeps every frame it got.
type Peer struct {
	t      testing.TB
	conn   *websocket.Conn
	n      int
	Frames []SwarmFrame
}

// DialPeer connects to a path of the gateway at addr. A key may be empty.
func DialPeer(t testing.TB, addr, path, key string) *Peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	var o websocket.DialOptions
	if key != "" {
		o.HTTPHeader = http.Header{"Authorization": {"Bearer " + key}}
	}
	conn, resp, err := websocket.Dial(ctx, "ws://"+addr+path, &o) //nolint:bodyclose // closed by the library
	_ = resp
	require.NoError(t, err)
	conn.SetReadLimit(4 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &Peer{t: t, conn: conn}
}

// Say sends a frame with the type and content and returns its id.
func (p *Peer) Say(kind string, content any) string {
	p.t.Helper()
	p.n++
	id := fmt.Sprintf("frame-%d", p.n)
	raw, err := json.Marshal(map[string]any{"id": id, "type": kind, "content": content})
	require.NoError(p.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
	defer cancel()
	require.NoError(p.t, p.conn.Write(ctx, websocket.MessageText, raw))
	return id
}

// Next returns the next frame, or the error that ended the connection. Pings are
// answered and not shown.
func (p *Peer) Next() (SwarmFrame, error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), process.Patience)
		_, raw, err := p.conn.Read(ctx)
		cancel()
		if err != nil {
			return SwarmFrame{}, err
		}
		var f SwarmFrame
		if err := json.Unmarshal(raw, &f); err != nil {
			return f, err
		}
		if f.Type == "ping" {
			p.Say("pong", map[string]any{})
			continue
		}
		if f.Type == "client.agent.task.result" && f.Seq == 0 && slices.ContainsFunc(p.Frames, func(old SwarmFrame) bool { return old.ID == f.ID }) {
			continue // once more, for the SDK
		}
		p.Frames = append(p.Frames, f)
		return f, nil
	}
}

// Until reads until a frame of the type arrives and returns it. An error that is not
// waited for ends the test.
func (p *Peer) Until(kind string) SwarmFrame {
	p.t.Helper()
	for {
		f, err := p.Next()
		require.NoError(p.t, err, "while waiting for %s; got %s", kind, p.story())
		if f.Type == kind {
			return f
		}
		require.NotEqual(p.t, "error", f.Type, "while waiting for %s: %s", kind, f.Content)
	}
}

// Types returns the types of all frames so far, in order.
func (p *Peer) Types() []string {
	out := make([]string, 0, len(p.Frames))
	for _, f := range p.Frames {
		out = append(out, f.Type)
	}
	return out
}

// story is what the peer was told, a line a frame.
func (p *Peer) story() string {
	var b strings.Builder
	for _, f := range p.Frames {
		fmt.Fprintf(&b, "\n%s %s", f.Type, f.Content)
	}
	return b.String()
}

// Drop cuts the connection, as a process does that is killed.
func (p *Peer) Drop() { _ = p.conn.CloseNow() }
