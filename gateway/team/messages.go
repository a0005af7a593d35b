package team

import (
	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

type build func(*scene) ([]message, error)

func merged(parts ...map[event.Type]build) map[event.Type]build {
	all := map[event.Type]build{}
	for _, p := range parts {
		for t, b := range p {
			all[t] = b
		}
	}
	return all
}

// nothing builds no message. A status may still follow from the event.
func nothing(*scene) ([]message, error) { return nil, nil }

// silent are the events that statuses and members' own events tell.
var silent = map[event.Type]build{
	event.RunCancelled:   nothing,
	event.TeamStopped:    nothing,
	event.TeamPauseBegun: nothing,
	event.TeamResumed:    nothing,
	event.TeamClosing:    nothing,
	event.TeamClosed:     nothing,
}

// inherited builds the neutral form of events that people should know.
func inherited(at *scene) ([]message, error) {
	if n, err := narrate.Of(at.Event); err != nil || n.Detail {
		return nil, err
	}
	return at.narrated()
}

// narrated builds the neutral form of an event: a notification of the system, an answer, an error, or a question that is
// answered like one about a call. The answer to a question ends it.
func (at *scene) narrated() ([]message, error) {
	n, err := narrate.Of(at.Event)
	if err != nil {
		return nil, err
	}
	list := at.told(n)
	if n.Closes != "" {
		kind := wire.ToolApproved
		if n.Kind == narrate.Failure {
			kind = wire.ToolDenied
		}
		list = append(list, one(kind, &wire.DecisionPayload{InvocationID: n.Closes, ToolName: toolQuestion, TurnID: n.Run})...)
	}
	for i := range list {
		list[i].member = n.By
	}
	return list, nil
}

func (at *scene) told(n narrate.Narration) []message {
	switch n.Kind {
	case narrate.Answer:
		return complete(n.Whole(), "", "")
	case narrate.Failure:
		return failure(n.Code, n.Whole())
	case narrate.Question:
		return at.asked(n.Ask.ID, questionName(n.Ask.Scope, toolPlan), questionArguments(n.Whole(), n.Ask.Options), &wire.ApprovalPayload{TurnID: n.Run})
	case narrate.Note, narrate.Message:
		return one(wire.TaskNotification, &wire.NotificationPayload{SenderID: "system." + string(at.Type), Content: n.Whole()})
	case narrate.Silent:
	}
	return nil
}

// with decodes the event's data for f.
func with[T event.Data](f func(*scene, T) []message) build {
	return func(at *scene) ([]message, error) {
		d, err := eventdata.As[T](at.Event)
		if err != nil {
			return nil, err
		}
		return f(at, d), nil
	}
}

func one(kind string, p payload) []message { return []message{{kind: kind, data: p}} }

func joined(lists ...[]message) []message {
	var all []message
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// status returns the AGENT_STATUS that the event makes. In the log of a team it is
// hidden unless the agent's status has changed.
func (at *scene) status(tool string) []message {
	after, ok := event.StatusAfter(at.Event)
	p := &wire.AgentStatusPayload{NewStatus: after, Trigger: string(at.Type), ToolName: tool}
	m := message{kind: wire.AgentStatus, data: p}
	if at.inTeam() {
		if m.hidden = at.Via.Status == ""; !m.hidden {
			p.NewStatus, ok = at.Via.Status, true
		}
		if at.Via.OldStatus != "" {
			p.OldStatus = &at.Via.OldStatus
		}
	}
	if !ok {
		return nil
	}
	if p.NewStatus == event.AgentToolDenied {
		p.ToolName, p.DenialForTool = "", tool
	}
	return []message{m}
}

// complete is a whole text. stop says why it ended, empty if that is not known.
func complete(content, messageID, stop string) []message {
	if _, _, short := event.AnswerNotice(stop, ""); !short {
		stop = ""
	}
	return one(wire.AssistantComplete, &wire.AssistantCompletePayload{
		Content: content, MessageID: messageID, StopReason: stop, ImageURLs: []string{}, AudioURLs: []string{}, VideoURLs: []string{},
	})
}

func failure(code, text string) []message {
	code, text = narrate.Fault(code, text)
	return one(wire.Error, &wire.ErrorPayload{Code: code, Message: text})
}
