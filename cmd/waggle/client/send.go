package client

import (
	"context"

	"github.com/google/uuid"

	"github.com/waggle-dev/waggle/cmd/waggle/socket"
	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// Tell sends a frame of the session once and reports whether there was a
// connection to send it on. It may be lost with the connection.
func (c *Client) Tell(ctx context.Context, frame map[string]any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return false
	}
	return socket.WriteJSON(ctx, c.conn, c.addressed(frame)) == nil // a failure ends the reader, too
}

// Message sends a text, until the server has shown that it has it or has refused
// it, and returns the message's id. metadata may be nil.
func (c *Client) Message(ctx context.Context, text string, metadata map[string]any) string {
	return c.ask(ctx, myagent.UserMessage, text, metadata)
}

// SolveTasks sends tasks to be solved without planning, as Message sends a text.
func (c *Client) SolveTasks(ctx context.Context, tasks any, metadata map[string]any) string {
	return c.ask(ctx, myagent.UserSolveTasks, map[string]any{"tasks": tasks}, metadata)
}

func (c *Client) ask(ctx context.Context, event string, content any, metadata map[string]any) string {
	id := uuid.NewString()
	m := map[string]any{"client_id": c.opt.ClientID, "message_id": id}
	for k, v := range metadata {
		m[k] = v
	}
	c.send(ctx, pending{
		frame: map[string]any{"event": event, "content": content, "metadata": m},
		settled: func(f Frame) bool {
			return f.Seq > 0 && f.Meta().MessageID == id || f.Seq == 0 && f.Event == myagent.ErrorValidation
		},
	})
	return id
}

// Respond answers a question, until the server has shown that it is answered.
func (c *Client) Respond(ctx context.Context, stepID string, content map[string]any) {
	c.send(ctx, pending{
		frame: map[string]any{
			"event": myagent.UserResponse, "step_id": stepID, "content": content,
			"metadata": map[string]any{"client_id": c.opt.ClientID, "message_id": uuid.NewString()},
		},
		settled: func(f Frame) bool {
			m := f.Meta()
			return m.StepID == stepID || m.Context.StepID == stepID || f.StepID == stepID && f.Event != myagent.AgentUserConfirm ||
				f.Seq == 0 && f.Event == myagent.ErrorValidation
		},
	})
}

func (c *Client) send(ctx context.Context, p pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, p)
	if c.conn != nil {
		_ = socket.WriteJSON(ctx, c.conn, c.addressed(p.frame)) // a failure ends the reader, and it is sent again
	}
}

// Cancel asks the server to stop what is on. Without a connection it does nothing.
func (c *Client) Cancel(ctx context.Context) {
	c.Tell(ctx, map[string]any{
		"event": myagent.UserCancel, "content": "Stopped at the terminal", "metadata": map[string]any{"reason": "user_quit"},
	})
}

// Break cuts the connection without a word, as a bad line does, and reports whether
// there was one on which the session was attached.
func (c *Client) Break() bool {
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	return conn != nil && conn.CloseNow() == nil
}

// ErrorText returns the text of a frame that reports an error, on one line.
func ErrorText(f Frame) string {
	text := f.Text()
	if text == "" {
		text = f.Show
	}
	text = terminal.Line(text, 2000)
	if code := f.Meta().ErrorCode; code != "" {
		text += " [" + terminal.Line(code, 40) + "]"
	}
	return text
}
