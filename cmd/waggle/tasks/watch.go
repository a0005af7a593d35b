package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/waggle-dev/waggle/cmd/waggle/terminal"
	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// lineLimit keeps a notice on one line of common terminals.
const lineLimit = 160

// Teller writes what happens to tasks, one line an event.
type Teller struct {
	W    io.Writer
	JSON bool // the server's messages instead
}

// Event is the handler of a client's events.
func (t Teller) Event(e swarm.Event) {
	if t.JSON {
		t.raw(e)
		return
	}
	if line := Describe(e); line != "" {
		_, _ = fmt.Fprintln(t.W, terminal.Line(line, lineLimit))
	}
}

func (t Teller) raw(e swarm.Event) {
	if e.Name != swarm.EventRawMessage || e.Message.Seq == 0 {
		return
	}
	if b, err := json.Marshal(e.Message); err == nil {
		_, _ = t.W.Write(append(terminal.ASCII(b), '\n'))
	}
}

// Describe returns the text of a task's event for people, empty if it has none.
func Describe(e swarm.Event) string {
	switch c := e.Content.(type) {
	case swarm.TaskCreated:
		return c.TaskID + "  created"
	case swarm.TaskNotification:
		return c.TaskID + "  " + c.NotificationType + ": " + Text(c.Message)
	case swarm.TaskQuestion:
		return c.TaskID + "  asks: " + Text(c.Message) + " " + Text(orNothing(c.Options)) + ` (waggle tasks tell ` + c.TaskID + ` ANSWER)`
	case swarm.ChildTaskCreated:
		return c.ParentTaskID + "  child task " + c.ChildTaskID + " of " + c.ChildAgentName
	case swarm.ChildTaskStatus:
		return c.ParentTaskID + "  child task " + c.ChildTaskID + " " + c.Status
	case swarm.ServiceStarted:
		return c.TaskID + "  calls " + c.ServiceName + " " + c.Operation
	case swarm.ServiceNotification:
		return c.TaskID + "  " + c.ServiceName + ": " + c.Message
	case swarm.ServiceCompleted:
		return c.TaskID + "  " + c.ServiceName + " " + c.Status
	case swarm.MCPExecution:
		return c.TaskID + "  " + c.ServerID + " " + c.ToolName + " " + c.Status
	case swarm.TaskResult:
		return c.TaskID + "  " + c.Status
	}
	if e.Name == swarm.EventDisconnected && e.Err != nil {
		return "connection lost: " + e.Err.Error()
	}
	return ""
}

func orNothing(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`""`)
	}
	return raw
}

// Await waits for the end of a task and writes its result to out: as people like it, or
// all of it as JSON.
func Await(ctx context.Context, h *swarm.Handle, out io.Writer, asJSON bool) error {
	r, err := h.Wait(ctx)
	if asJSON && r.Status != "" {
		b, encodeErr := json.Marshal(r)
		if encodeErr != nil {
			return encodeErr
		}
		if _, writeErr := out.Write(append(terminal.ASCII(b), '\n')); writeErr != nil {
			return writeErr
		}
		return err
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, Text(r.Result))
	return err
}

// Data returns the data for an agent: valid JSON as it is, any other text as a JSON string.
func Data(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	b, err := json.Marshal(text)
	if err != nil {
		return json.RawMessage(`""`) // a text can always be encoded
	}
	return b
}
