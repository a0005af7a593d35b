package conversation

import (
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// Message is a whole message of the model.
type Message struct {
	ID        string
	Content   string
	ToolCalls []event.ToolCall
	Stop      string          `json:",omitempty"` // why it is not complete: event.StopLength and others; empty = it is
	Attempt   int             `json:",omitempty"` // of one that was stopped: its worker's
	Reasoning string          `json:",omitempty"` // kept for the model that wants it back with its calls
	PassBack  *event.PassBack `json:",omitempty"`
}

// stopped reports whether the job ended in the middle of the message.
func (m Message) stopped() bool { return m.Stop == event.StopStopped }

// shown returns the text for the model.
func (m Message) shown() string {
	if m.stopped() {
		return m.Content + cutMark
	}
	return m.Content
}

// cutMark tells a model that people have read no more than this of an earlier answer.
const cutMark = "\n\n[Stopped here: people have not got the rest of this answer.]"
