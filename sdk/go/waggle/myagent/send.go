package myagent

import (
	"encoding/json"

	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
	"github.com/waggle-dev/waggle/sdk/go/link"
)

// Message sends a text until the server has accepted or refused it, and returns the message's id.
// metadata may be nil. The error is that of Send of package link, or of the encoding.
func (c *Client) Message(text string, metadata map[string]any) (string, error) {
	return c.ask(wire.UserMessage, text, metadata)
}

// SolveTasks sends tasks to be solved without planning, as Message sends a text.
func (c *Client) SolveTasks(tasks any, metadata map[string]any) (string, error) {
	return c.ask(wire.UserSolveTasks, map[string]any{"tasks": tasks}, metadata)
}

func (c *Client) ask(event string, content any, metadata map[string]any) (string, error) {
	m := map[string]any{"client_id": c.opt.ClientID, "message_id": newID()}
	for k, v := range metadata {
		m[k] = v
	}
	id, _ := m["message_id"].(string)
	return id, c.send(map[string]any{"event": event, "content": content, "metadata": m}, func(f Frame) bool {
		return f.Seq > 0 && f.Meta().MessageID == id || f.Seq == 0 && f.Event == wire.ErrorValidation
	})
}

// Respond answers a question, until the server has shown that it is answered.
func (c *Client) Respond(stepID string, content map[string]any) error {
	frame := map[string]any{
		"event": wire.UserResponse, "step_id": stepID, "content": content,
		"metadata": map[string]any{"client_id": c.opt.ClientID, "message_id": newID()},
	}
	return c.send(frame, func(f Frame) bool {
		m := f.Meta()
		return m.StepID == stepID || m.Context.StepID == stepID || f.StepID == stepID && f.Event != wire.AgentUserConfirm ||
			f.Seq == 0 && f.Event == wire.ErrorValidation
	})
}

func (c *Client) send(frame map[string]any, settled func(Frame) bool) error {
	if _, err := json.Marshal(frame); err != nil {
		return err
	}
	return c.link.Send(link.Outgoing[Frame]{
		Frame: func() []byte { return encode(c.addressed(frame)) }, Settled: settled,
	})
}

// Cancel asks the server to stop the active run; without a connection it returns false.
func (c *Client) Cancel(reason string) bool {
	return c.Tell(map[string]any{
		"event": wire.UserCancel, "content": reason, "metadata": map[string]any{"reason": "user_quit"},
	})
}

// Break cuts the connection without a goodbye, as a bad line does. It returns false unless the
// session was attached on one.
func (c *Client) Break() bool { return c.link.Cut() }
