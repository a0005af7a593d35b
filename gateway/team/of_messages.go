package team

import (
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// directMessage is the type of a message between agents that says none.
const directMessage = "direct_message"

// ofMessages are the events of runs and of what is said in them.
var ofMessages = map[event.Type]build{
	event.MessageReceived:  with(messageReceived),
	event.MessageStarted:   with(messageStarted),
	event.MessageDelta:     with(messageDelta),
	event.MessageCompleted: with(messageCompleted),
	event.MessageDiscarded: with(messageDiscarded),

	event.ReasoningCompleted: with(reasoningCompleted),

	event.RunCompleted:   with(runCompleted),
	event.RunFailed:      with(runFailed),
	event.JobFailed:      with(jobFailed),
	event.Notice:         (*scene).narrated, // also a detail
	event.CommandRefused: with(commandRefused),
}

// messageReceived shows what others than users say; users know what they said.
func messageReceived(at *scene, d event.MessageReceivedData) []message {
	switch {
	case d.Sender == nil:
		return nil
	case d.Sender.Kind == event.SenderSystem:
		return one(wire.TaskNotification, &wire.NotificationPayload{SenderID: d.Sender.ID, Content: d.Content})
	}
	return one(wire.InterAgentMessage, &wire.InterAgentPayload{
		SenderAgentID: d.Sender.ID, SenderAgentName: narrate.First(d.Sender.Route, d.Sender.Name),
		RecipientRoleName: at.member(message{}), Content: d.Content, MessageType: narrate.First(d.Sender.MessageType, directMessage),
	})
}

// messageStarted says that the model is asked. The segment of a text begins with the text;
// in old logs, which do not say where that is, it begins here.
func messageStarted(at *scene, d event.MessageStartedData) []message {
	if d.Waits {
		return at.status("")
	}
	return joined(segmentStart(d.MessageID), at.status(""))
}

func messageDelta(_ *scene, d event.MessageDeltaData) []message {
	if d.Begins {
		return joined(segmentStart(d.MessageID), segmentContent(d.MessageID, d.Text))
	}
	return segmentContent(d.MessageID, d.Text)
}

func segmentStart(id string) []message {
	return one(wire.SegmentStart, &wire.SegmentStartPayload{ID: id, SegmentType: wire.SegmentText})
}

func segmentContent(id, text string) []message {
	return one(wire.SegmentContent, &wire.SegmentContentPayload{ID: id, SegmentType: wire.SegmentText, Delta: text})
}

func segmentEnd(id string) []message {
	return one(wire.SegmentEnd, &wire.SegmentEndPayload{ID: id, SegmentType: wire.SegmentText})
}

// reasoningCompleted is a whole segment: no delta says that a reasoning begins with it, and a segment without its beginning
// is lost to clients.
func reasoningCompleted(_ *scene, d event.ReasoningCompletedData) []message {
	if d.Content == "" {
		return nil
	}
	segment := d.MessageID + reasoningOf
	return joined(
		one(wire.SegmentStart, &wire.SegmentStartPayload{ID: segment, SegmentType: wire.SegmentReasoning}),
		one(wire.SegmentContent, &wire.SegmentContentPayload{ID: segment, SegmentType: wire.SegmentReasoning, Delta: d.Content}),
		one(wire.SegmentEnd, &wire.SegmentEndPayload{ID: segment, SegmentType: wire.SegmentReasoning}),
	)
}

// reasoningOf follows the id of a message in that of the segment of its reasoning.
const reasoningOf = "-reasoning"

// lastSegment returns what is left to say of the segment of a message that is whole: its
// end, or all of it if no part of the text was shown before. A plan is JSON, which is
// nothing to read.
func lastSegment(d event.MessageCompletedData) []message {
	switch {
	case !d.Silent:
		return segmentEnd(d.MessageID)
	case d.Content == "", d.Stage == event.StagePlanning:
		return nil
	}
	return joined(segmentStart(d.MessageID), segmentContent(d.MessageID, d.Content), segmentEnd(d.MessageID))
}

// messageCompleted ends the segment of a text. A piece of a plan answers nothing.
func messageCompleted(at *scene, d event.MessageCompletedData) []message {
	list := joined(lastSegment(d), at.status(""))
	if d.JobID != "" {
		return list
	}
	return append(list, complete(d.Content, d.MessageID, d.StopReason)...)
}

func messageDiscarded(_ *scene, d event.MessageDiscardedData) []message {
	if d.Silent {
		return nil
	}
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
	return joined(complete(d.Content, d.MessageID, d.StopReason), at.status(""))
}

func runFailed(at *scene, d event.RunFailedData) []message {
	list := failure(d.Code, d.Message)
	if d.Answer != "" {
		list = append(list, complete(d.Answer, "", "")...)
	}
	status := at.status("")
	for _, m := range status {
		if p, ok := m.data.(*wire.AgentStatusPayload); ok {
			p.ErrorDetails, p.ErrorMessage = narrate.Fault(d.Code, d.Message)
		}
	}
	return append(list, status...)
}

// jobFailed is silent while another attempt follows.
func jobFailed(_ *scene, d event.JobFailedData) []message {
	if d.Retryable && d.Try < d.MaxTries {
		return nil
	}
	return failure(d.Code, d.Message)
}

// commandRefused is a direct message: the reason why a frame has no effect. The log that it
// is about says the id of its agent; the name comes with it.
func commandRefused(at *scene, d event.CommandRefusedData) []message {
	at.direct = at.Sequence == 0
	code, text := narrate.Fault(d.Code, d.Message)
	return []message{{kind: wire.Error, member: d.AgentName, data: &wire.ErrorPayload{
		Code: code, Message: text, Field: d.Field, InputID: d.InputID, AnsweredBy: d.AnsweredBy, Decision: d.Decision,
	}}}
}
