package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// Frame is one frame of the ORBIT dialect.
type Frame struct {
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

// Client is a bare WebSocket client that keeps every frame it got.
type Client struct {
	t       testing.TB
	conn    *websocket.Conn
	Frames  []Frame
	Session string
	LastSeq uint64
}

// Dial connects to a WebSocket URL.
func Dial(t testing.TB, url string) *Client {
	t.Helper()
	c, err := TryDial(t, url)
	require.NoError(t, err)
	return c
}

// TryDial connects to a WebSocket URL of a server that may be down.
func TryDial(t testing.TB, url string) (*Client, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, url, nil) //nolint:bodyclose // closed by the library
	_ = resp
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(4 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return &Client{t: t, conn: conn}, nil
}

// Send sends a text frame.
func (c *Client) Send(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	require.NoError(c.t, c.conn.Write(ctx, websocket.MessageText, []byte(text)))
}

// Ask sends a user message.
func (c *Client) Ask(content string) {
	c.t.Helper()
	b, err := json.Marshal(map[string]string{"type": "user_message", "content": content})
	require.NoError(c.t, err)
	c.Send(string(b))
}

// Next returns the next frame, or the error that ended the connection.
func (c *Client) Next() (Frame, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	_, b, err := c.conn.Read(ctx)
	if err != nil {
		return Frame{}, err
	}
	f := Frame{Raw: string(b)}
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
func (c *Client) Until(types ...string) Frame {
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
func (c *Client) ReadTo(kind string, n int) error {
	for n > 0 {
		f, err := c.Next()
		if err != nil {
			return fmt.Errorf("after seq %d: %w", c.LastSeq, err)
		}
		if f.Type == kind {
			n--
		}
	}
	return nil
}

// Types returns the types of all frames so far, in order.
func (c *Client) Types() []string {
	out := make([]string, 0, len(c.Frames))
	for _, f := range c.Frames {
		out = append(out, f.Type)
	}
	return out
}

// Close closes the socket in good order.
func (c *Client) Close() {
	_ = c.conn.Close(websocket.StatusNormalClosure, "")
}

// Eventually waits until the condition holds.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, Patience, 50*time.Millisecond, what)
}

// CloseCode returns the close code that the error of Next carries, or -1.
func CloseCode(err error) int { return int(websocket.CloseStatus(err)) }

// Answer is the answer to an HTTP request.
type Answer struct {
	Status int
	Body   string
}

// Get asks for a URL.
func Get(t testing.TB, url string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return Answer{Status: resp.StatusCode, Body: string(body)}
}
