package conversation

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// MaxWaiting is how many messages may wait for the active run: enough for a person who types
// ahead, and few enough to stop a faulty client early.
const MaxWaiting = 16

// MaxWaitingMember is MaxWaiting for a member of a team. Its messages come from colleagues and from
// the board, which announces each task to its assignee and holds up to a hundred.
const MaxWaitingMember = 256

// intake decides on messages.
type intake struct{ handler }

func (h intake) receive() (decision.Decision, error) {
	var d command.UserMessage
	if err := h.c.Decode(&d); err != nil {
		return decision.Decision{}, err
	}
	if h.s.known.heard(h.c.ID) {
		return h.receivedAgain(d)
	}
	if h.s.Created.IsZero() {
		return decision.Decision{}, fault.New(absent(h.c.Service))
	}
	if h.s.Agent != nil {
		d.RunSpec = event.RunSpec{Budget: d.Budget} // members of teams chat
	}
	if why := h.refusal(d.RunSpec); why != nil {
		return decision.Of(decision.Fact{ID: h.c.ID + ".refused", Data: event.MessageRefusedData{MessageID: h.c.ID, Code: string(why.Code), Message: why.Message}}), nil //nolint:nilerr // a refusal is an outcome, not a failure
	}
	if r := h.s.Active(); r != nil && h.onBusy(d.RunSpec) == event.OnBusyInterrupt {
		return decision.Of(h.stop(r, "interrupted")...), nil // the message itself is decided about next
	}
	queued := h.s.Waiting()
	if h.s.Active() != nil {
		queued++
	}
	got := event.MessageReceivedData{
		MessageID: h.c.ID, RunID: RunID(h.c.ID), Content: d.Content, Principal: h.c.Principal, Queued: queued,
		Sender: d.Sender, Attachments: d.Attachments, RunSpec: d.RunSpec, Tainted: d.Tainted,
	}
	list := []decision.Fact{{ID: h.c.ID + ".received", Data: got}}
	if queued == 0 {
		list = append(list, h.start(&Run{ID: got.RunID, MessageID: got.MessageID, Content: got.Content, Spec: d.RunSpec}))
	}
	return decision.Of(list...), nil
}

// receivedAgain decides on a repeat of a message. It answers a sender that asks for that, unless the reason of an old refusal is
// forgotten.
func (h intake) receivedAgain(d command.UserMessage) (decision.Decision, error) {
	got, err := h.goOn()
	switch {
	case h.c.Again == "":
	case h.s.known.wasRefused(h.c.ID):
		if d := h.s.known.refusal(h.c.ID); d != nil {
			got.Direct = event.CommandRefusedData{CommandID: h.c.ID, Code: d.Code, Message: d.Message}
		}
	default:
		got.Direct = event.MessageReceivedData{
			MessageID: h.c.ID, RunID: RunID(h.c.ID), Content: d.Content, Principal: h.c.Principal, Sender: d.Sender, Attachments: d.Attachments, RunSpec: d.RunSpec,
		}
	}
	return got, err
}

func (h intake) refusal(spec event.RunSpec) *fault.Fault {
	switch {
	case h.s.Closed && h.s.Agent != nil:
		return fault.New(fault.TeamClosed)
	case h.s.Closed:
		return fault.New(fault.SessionClosed)
	case h.rules.Barred != nil:
		return h.rules.Barred
	case spec.Agent != "" && spec.Mode != event.ModeChat:
		return fault.Newf(fault.InvalidField, "Agents only answer messages with mode=chat.").At("mode")
	case h.s.Waiting() >= h.room():
		return fault.New(fault.QueueFull)
	case h.s.Active() != nil && h.onBusy(spec) == event.OnBusyReject:
		return fault.New(fault.SessionBusy)
	}
	return nil
}

// onBusy returns the handling of a message during an active run. Chats always enqueue, because
// people type ahead.
func (h intake) onBusy(spec event.RunSpec) string {
	switch {
	case spec.OnBusy != "":
		return spec.OnBusy
	case spec.Mode == event.ModeChat:
		return event.OnBusyEnqueue
	case h.s.Preferences.OnBusy != "":
		return h.s.Preferences.OnBusy
	}
	return h.rules.OnBusy
}

// room is how many messages may wait.
func (h intake) room() int {
	if h.s.Agent != nil {
		return MaxWaitingMember
	}
	return MaxWaiting
}

// RunID returns the id of the run that answers the message with the given id.
func RunID(messageID string) string {
	sum := sha256.Sum256([]byte(messageID))
	return "run_" + hex.EncodeToString(sum[:10])
}
