package conversation

import (
	"slices"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/marks"
)

// maxRefusals bounds the refusals whose reasons a state remembers, for senders that repeat a message.
const maxRefusals = 64

// receipts remember which messages the log has had, and which effects of commands.
type receipts struct {
	marks.Set
	refusals []event.MessageRefusedData // the newest ones
}

// messageMark is the mark of a message that was received.
func messageMark(messageID string) string { return "message " + messageID }

// refusalMark is the mark of a message that was refused.
func refusalMark(messageID string) string { return "refusal " + messageID }

// heard reports whether the message was received or refused.
func (r *receipts) heard(messageID string) bool {
	return r.Has(messageMark(messageID)) || r.wasRefused(messageID)
}

func (r *receipts) wasRefused(messageID string) bool { return r.Has(refusalMark(messageID)) }

func (r *receipts) refuse(d event.MessageRefusedData) {
	r.Add(refusalMark(d.MessageID))
	if r.refusals = append(r.refusals, d); len(r.refusals) > maxRefusals {
		r.refusals = slices.Delete(r.refusals, 0, 1)
	}
}

// refusal returns why a message was refused, nil if that is forgotten.
func (r *receipts) refusal(messageID string) *event.MessageRefusedData {
	i := slices.IndexFunc(r.refusals, func(d event.MessageRefusedData) bool { return d.MessageID == messageID })
	if i < 0 {
		return nil
	}
	return &r.refusals[i]
}
