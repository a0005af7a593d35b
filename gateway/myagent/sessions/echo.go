package sessions

import (
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// queryEcho is the parameter of a socket that wants to be shown its own messages, too.
// Other sockets are shown them anyway.
const queryEcho = "echo"

// maxOwn bounds the messages that a socket is remembered by: more than can wait in the
// sessions that it holds.
const maxOwn = 1024

// readEcho reads whether the socket is shown its own messages.
func (m *Multi) readEcho() error {
	switch m.c.Query().Get(queryEcho) {
	case "", "false", "0":
		m.own = map[string]bool{}
	case "true", "1":
	default:
		return fault.Newf(fault.InvalidField, "echo must be true or false.").At(queryEcho)
	}
	return nil
}

// noteOwn remembers messages that the client shows itself.
func (m *Multi) noteOwn(cmds []command.Command) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.own == nil {
		return
	}
	if len(m.own) >= maxOwn {
		clear(m.own)
	}
	for _, c := range cmds {
		if c.Verb == command.SendMessage {
			m.own[c.ID] = true
		}
	}
}

// ownEcho reports whether an event is the echo of a message that came from this socket.
func (m *Multi) ownEcho(e event.Event) bool {
	if e.Type != event.MessageReceived {
		return false
	}
	d, err := event.As[event.MessageReceivedData](e)
	if err != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own[d.MessageID]
}
