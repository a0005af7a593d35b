package client

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// OrbitFrame is one frame of the ORBIT dialect.
type OrbitFrame struct {
	Type        string  `json:"type"`
	Timestamp   string  `json:"timestamp"`
	Seq         uint64  `json:"seq"`
	ExecutionID *string `json:"execution_id"`
	Data        struct {
		Message            string          `json:"message"`
		SessionID          string          `json:"session_id"`
		ToolName           string          `json:"tool_name"`
		Status             string          `json:"status"`
		Result             string          `json:"result"`
		Description        string          `json:"description"`
		Arguments          json.RawMessage `json:"arguments"`
		ExecutionCompleted bool            `json:"execution_completed"`
		MessageID          string          `json:"message_id"`
		Text               string          `json:"text"`
	} `json:"data"`
	Raw string `json:"-"`
}

// Orbit is a bare WebSocket client that keeps every frame it got.
type Orbit struct {
	t       testing.TB
	conn    *websocket.Conn
	Frames  []OrbitFrame
	Session string
	LastSeq uint64
}

// DialOrbit connects to a WebSocket URL.
func DialOrbit(t testing.TB, url string) *Orbit {
	t.Helper()
	c, err := TryOrbit(t, url)
	require.NoError(t, err)
	return c
}

// DialOrbitAs is DialOrbit with an API key.
func DialOrbitAs(t testing.TB, url, key string) *Orbit {
	t.Helper()
	c, err := tryOrbit(t, url, key)
	require.NoError(t, err)
	return c
}

// TryOrbit connects to a WebSocket URL of a server that may be down.
func TryOrbit(t testing.TB, url string) (*Orbit, error) {
	t.Helper()
	return tryOrbit(t, url, "")
}

func tryOrbit(t testing.TB, url, key string) (*Orbit, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	conn, err := dial(ctx, url, key)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &Orbit{t: t, conn: conn}, nil
}

// Send sends a text frame.
func (c *Orbit) Send(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	require.NoError(c.t, c.conn.Write(ctx, websocket.MessageText, []byte(text)))
}

// Ask sends a user message.
func (c *Orbit) Ask(content string) {
	c.t.Helper()
	b, err := json.Marshal(map[string]string{"type": "user_message", "content": content})
	require.NoError(c.t, err)
	c.Send(string(b))
}

// Next returns the next frame, or the error that ended the connection.
func (c *Orbit) Next() (OrbitFrame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), process.MaxWait)
	defer cancel()
	_, b, err := c.conn.Read(ctx)
	if err != nil {
		return OrbitFrame{}, err
	}
	f := OrbitFrame{Raw: string(b)}
	if err := json.Unmarshal(b, &f); err != nil {
		return f, err
	}
	if f.Data.SessionID != "" {
		c.Session = f.Data.SessionID
	}
	if f.Seq > 0 {
		if f.Seq <= c.LastSeq {
			return f, fmt.Errorf("seq %d after %d: %s", f.Seq, c.LastSeq, f.Raw)
		}
		c.LastSeq = f.Seq
	}
	c.Frames = append(c.Frames, f)
	return f, nil
}

// Until reads until a frame of one of the types arrives and returns it.
func (c *Orbit) Until(types ...string) OrbitFrame {
	c.t.Helper()
	for {
		f, err := c.Next()
		require.NoError(c.t, err, "while waiting for %v; got %s", types, c.Types())
		for _, t := range types {
			if f.Type == t {
				return f
			}
		}
	}
}

// ReadTo reads until n frames of the type have arrived. Unlike Until it may be
// called on any goroutine.
func (c *Orbit) ReadTo(kind string, n int) error {
	for n > 0 {
		f, err := c.Next()
		if err != nil {
			return fmt.Errorf("after seq %d, while waiting for %s: %w", c.LastSeq, kind, err)
		}
		if f.Type == "error" && kind != f.Type {
			return fmt.Errorf("after seq %d, while waiting for %s: %s", c.LastSeq, kind, f.Raw)
		}
		if f.Type == kind {
			n--
		}
	}
	return nil
}

// Types returns the types of all frames so far, in order.
func (c *Orbit) Types() []string {
	out := make([]string, 0, len(c.Frames))
	for _, f := range c.Frames {
		out = append(out, f.Type)
	}
	return out
}

// Close closes the socket in good order.
func (c *Orbit) Close() {
	_ = c.conn.Close(websocket.StatusNormalClosure, "")
}

// CloseCode returns the close code that the error of Next carries, or -1.
func CloseCode(err error) int { return int(websocket.CloseStatus(err)) }
