package teamwork

import (
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// mail is the messages to members.
type mail struct {
	messages set // ids of accepted messages
	pending  []letter
}

// letter is a message that its member has not shown yet. Snapshots hold it.
type letter struct {
	event.TeamMessageData `json:"letter"`

	Seq uint64 `json:"seq"`
}

// arrived takes a message off those that are to be handed on.
func (ml *mail) arrived(messageID string) {
	ml.pending = slices.DeleteFunc(ml.pending, func(m letter) bool { return m.MessageID == messageID })
}
