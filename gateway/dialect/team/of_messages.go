package team

import (
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// directMessage is the type of a message between agents that says none.
const directMessage = "direct_message"

// ofMessages are the events of runs and of what is said in them.
var ofMessages = map[event.Type]build{
	event.MessageReceived:  with(messageReceived),
	event.MessageRefused:   with(messageRefused),
	event.MessageStarted:   with(messageStarted),
	event.MessageDelta:     with(messageDelta),
	event.MessageCompleted: with(messageCompleted),
	event.MessageDiscarded: with(messageDiscarded),
	event.RunCompleted:     with(runCompleted),
	event.RunFailed:        with(runFailed),
	event.TurnFailed:       with(turnFailed),
	event.Notice:           with(notice),
	event.Error:            with(failed),
	event.CommandRefused:   with(commandRefused),
}

// messageReceived shows what others than users say; users know what they said. The
// tasks of a run that has no plan come with its message.
func messageReceived(at *scene, d event.MessageReceivedData) []message {
	var list []message
	switch {
	case d.Sender == nil:
	case d.Sender.Kind == event.SenderSystem:
		list = one(wire.TaskNotification, &wire.NotificationPayload{SenderID: d.Sender.ID, Content: d.Content})
	default:
		list = one(wire.InterAgentMessage, &wire.InterAgentPayload{
			SenderAgentID: d.Sender.ID, SenderAgentName: first(d.Sender.Route, d.Sender.Name),
			RecipientRoleName: at.member(message{}), Content: d.Content, MessageType: first(d.Sender.MessageType, directMessage),
		})
	}
	if len(d.Tasks) > 0 {
		list = append(list, at.tasksCreated(d.Tasks)...)
	}
	return list
}

func messageRefused(_ *scene, d event.MessageRefusedData) []message {
	return failure(d.Code, d.Message)
}

func messageStarted(at *scene, d event.MessageStartedData) []message {
	return joined(one(wire.SegmentStart, &wire.SegmentStartPayload{ID: d.MessageID, SegmentType: wire.SegmentText}), at.status(""))
}

func messageDelta(_ *scene, d event.MessageDeltaData) []message {
	return one(wire.SegmentContent, &wire.SegmentContentPayload{ID: d.MessageID, SegmentType: wire.SegmentText, Delta: d.Text})
}

// messageCompleted ends the segment of a text. A piece of a plan is no answer.
func messageCompleted(at *scene, d event.MessageCompletedData) []message {
	list := joined(one(wire.SegmentEnd, &wire.SegmentEndPayload{ID: d.MessageID, SegmentType: wire.SegmentText}), at.status(""))
	if d.WorkID != "" {
		return list
	}
	return append(list, complete(d.Content, d.MessageID)...)
}

func messageDiscarded(_ *scene, d event.MessageDiscardedData) []message {
	return one(wire.SegmentEnd, &wire.SegmentEndPayload{
		ID: d.MessageID, SegmentType: wire.SegmentText, Metadata: &wire.SegmentMetadata{Discarded: true, Reason: d.Reason},
	})
}

// runCompleted says the answer of a run that had a plan. That of any other has been
// said by the message that it is.
func runCompleted(at *scene, d event.RunCompletedData) []message {
	if d.Outcome == "" && d.MessageID != "" {
		return at.status("")
	}
	return joined(complete(d.Content, d.MessageID), at.status(""))
}

func runFailed(at *scene, d event.RunFailedData) []message {
	list := failure(d.Code, d.Message)
	if d.Answer != "" {
		list = append(list, complete(d.Answer, "")...)
	}
	status := at.status("")
	for _, m := range status {
		if p, ok := m.data.(*wire.AgentStatusPayload); ok {
			p.ErrorDetails, p.ErrorMessage = said(d.Code, d.Message)
		}
	}
	return append(list, status...)
}

// turnFailed says that a unit of work has failed for good; what is tried again is not lost.
func turnFailed(_ *scene, d event.TurnFailedData) []message {
	if d.Retryable && d.Try < d.MaxTries {
		return nil
	}
	return failure(d.Code, d.Message)
}

// complete is a whole text.
func complete(content, messageID string) []message {
	return one(wire.AssistantComplete, &wire.AssistantCompletePayload{
		Content: content, MessageID: messageID, ImageURLs: []string{}, AudioURLs: []string{}, VideoURLs: []string{},
	})
}

func notice(_ *scene, d event.NoticeData) []message {
	return one(wire.TaskNotification, &wire.NotificationPayload{SenderID: "system." + string(event.Notice), Content: d.Message})
}

func failed(_ *scene, d event.ErrorData) []message { return failure(d.Code, d.Message) }

// commandRefused is an aside: why what the client sent had no effect. The log that it is
// about says the id of its agent; the name comes with it.
func commandRefused(at *scene, d event.CommandRefusedData) []message {
	at.aside = at.Sequence == 0
	code, text := said(d.Code, d.Message)
	return []message{{kind: wire.Error, member: d.AgentName, data: &wire.ErrorPayload{
		Code: code, Message: text, Field: d.Field, InputID: d.InputID, AnsweredBy: d.AnsweredBy, Decision: d.Decision,
	}}}
}

func failure(code, text string) []message {
	code, text = said(code, text)
	return one(wire.Error, &wire.ErrorPayload{Code: code, Message: text})
}

// said fills in what an event leaves out: an error always has a code and a text.
func said(code, text string) (string, string) {
	code = first(code, string(fault.Internal))
	return code, first(text, fault.Lookup(fault.Code(code)).Message)
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
