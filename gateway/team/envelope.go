package team

import (
	"strconv"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// envelope returns the message as an event of the team's stream, or, for depth 1 and
// more, of the stream of the nested team of that depth: the same that a socket of the
// nested team is sent.
func (at *scene) envelope(depth int, m message, n count) wire.Envelope {
	e := at.outer
	if depth > 0 {
		e = at.nests[depth-1]
	}
	_, team := place(e.Subject)
	v := wire.Envelope{
		EventID: eventID(e, n.i), Timestamp: wire.Timestamp{Time: e.Time}, TeamID: team, Source: source(m.kind),
		Sequence: position(e.Sequence, n.i, n.n),
	}
	switch {
	case depth < len(at.nests):
		v.Source = wire.SourceSubTeam
		v.Data = wire.SubTeamEventData{SubTeamNodeName: at.nodes[depth], SubTeamEvent: at.envelope(depth+1, m, n)}
	case v.Source == wire.SourceAgent:
		v.Data = at.agentEvent(m, n)
	default:
		v.Data = plain(m)
	}
	return v
}

// agentEvent returns the data of an event of source AGENT.
func (at *scene) agentEvent(m message, n count) wire.AgentEventData {
	d := wire.AgentEventData{AgentName: at.member(m), AgentEvent: at.streamEvent(m, at.own, n.all, n.of)}
	if m.kind == wire.AgentStatus {
		d.OldStatus = at.Via.OldStatus
	}
	return d
}

// streamEvent returns message i of n of the event e as an event of an agent's stream. In
// the log of a team and in the agent's own it is the same: e is the agent's event.
func (at *scene) streamEvent(m message, e event.Event, i, n int) wire.StreamEvent {
	return wire.StreamEvent{
		EventID: eventID(e, i), Timestamp: wire.Timestamp{Time: e.Time}, AgentID: at.entity,
		EventType: wire.EventTypes[m.kind], Data: at.inside(m), Sequence: position(e.Sequence, i, n),
	}
}

// eventID returns the id of message i of an event.
func eventID(e event.Event, i int) string {
	if i == 0 {
		return e.ID
	}
	return e.ID + "." + strconv.Itoa(i)
}

// inside returns the data of a StreamEvent: nothing but what the log says where it
// happened, so that it is the same wherever it is shown. There an agent has no name.
func (at *scene) inside(m message) any {
	switch d := m.data.(type) {
	case *wire.SegmentStartPayload:
		return segment(m.kind, d.ID, d.SegmentType, wire.SegmentData{Metadata: d.Metadata})
	case *wire.SegmentContentPayload:
		return segment(m.kind, d.ID, d.SegmentType, wire.SegmentData{Delta: &d.Delta})
	case *wire.SegmentEndPayload:
		return segment(m.kind, d.ID, d.SegmentType, wire.SegmentData{Metadata: d.Metadata})
	case *wire.AgentStatusPayload:
		own := *d
		own.OldStatus, own.Where = nil, wire.Where{}
		return &own
	case *wire.InterAgentPayload:
		if own := *d; at.inTeam() && own.RecipientRoleName == at.Via.Name() {
			own.RecipientRoleName, own.Where = at.entity, wire.Where{}
			return &own
		}
	case *wire.ApprovalPayload:
		own := *d
		own.ApprovalToken.TeamRunID, own.ApprovalToken.TargetMemberName, own.Where = at.entity, at.entity, wire.Where{}
		return &own
	}
	return plain(m)
}

func segment(kind, segmentID, segmentType string, d wire.SegmentData) wire.SegmentEvent {
	return wire.SegmentEvent{Type: kind, SegmentID: segmentID, SegmentType: segmentType, Payload: d}
}

// plain returns the data without what only the flattened form has.
func plain(m message) any {
	m.data.Put(wire.Where{})
	if d, ok := m.data.(*wire.TaskPlanPayload); ok {
		d.EventType = ""
	}
	return m.data
}

// render returns the message as a frame. An invalid raw member makes it an ERROR.
func (c *Codec) render(at *scene, m message, n count) []byte {
	b, err := c.encoded(at, m, n)
	if err != nil {
		b, err = c.encoded(at, message{kind: wire.Error, data: unreadable()}, n)
	}
	if err != nil {
		panic("team: " + err.Error()) // A message without raw members can always be encoded.
	}
	return b
}

func (c *Codec) encoded(at *scene, m message, n count) ([]byte, error) {
	switch {
	case !c.deep || at.direct:
		m.data.Put(at.where(c, m, n))
		return wire.Encode(wire.Frame{Type: m.kind, Payload: m.data})
	case c.single:
		return wire.Encode(at.streamEvent(m, at.outer, n.i, n.n))
	}
	return wire.Encode(at.envelope(0, m, n))
}
