package team

import (
	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// builders maps the types of events to what makes their messages. A status that
// follows from an event is added to them.
var builders = merged(ofMessages, ofTools, ofPlans, ofSwarm, ofTeams)

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

// with decodes the event's data for f.
func with[T event.Data](f func(*scene, T) []message) build {
	return func(at *scene) ([]message, error) {
		d, err := event.As[T](at.Event)
		if err != nil {
			return nil, err
		}
		return f(at, d), nil
	}
}

// messages returns what the event becomes.
func (at *scene) messages() []message {
	var list []message
	b, known := builders[at.Type]
	if known {
		var err error
		if list, err = b(at); err != nil {
			return one(wire.Error, unreadable())
		}
	}
	if at.Type == "" || at.Type == event.TeamMemberEvent || at.Type == event.TeamSubTeamEvent {
		return one(wire.Error, unreadable()) // There is something inside that could not be read.
	}
	for _, m := range list {
		if m.kind == wire.AgentStatus {
			return list
		}
	}
	return append(list, at.status("")...)
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
