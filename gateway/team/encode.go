package team

import (
	"encoding/json"
	"strings"

	"github.com/waggle-dev/waggle/gateway/narrate"
	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// payload is what all payloads of messages can be told.
type payload interface{ Put(at wire.Where) }

// message is one that an event becomes, in neither form yet.
type message struct {
	kind   string
	data   payload
	member string // the agent that does it, in a run outside of teams
	hidden bool   // only for the count: a status that has not changed for the team, or an addition
}

// additions are the messages that the client of the original does not know.
var additions = map[string]bool{wire.MessageAccepted: true, wire.ToolAutoExecuting: true}

// adds reports whether the client of the original would make nothing of the message, or the
// wrong thing: it takes the status of a nested team for that of the whole one.
func (at *scene) adds(m message) bool {
	return additions[m.kind] || m.kind == wire.TeamStatus && len(at.nodes) > 0
}

// count says which message of its event one is: of those that are shown, and of those
// that the log of the agent itself would show.
type count struct{ i, n, all, of int }

// unreadable tells that an event cannot be shown.
func unreadable() *wire.ErrorPayload {
	f := fault.Newf(fault.Internal, "An event could not be shown. Tell the operator its position.")
	return &wire.ErrorPayload{Code: string(f.Code), Message: f.Public()}
}

// scene is an event with where it happened.
type scene struct {
	event.Event               // the event, unwrapped
	outer       event.Event   // as the log of the socket has it
	own         event.Event   // as the log where it happened has it
	nests       []event.Event // the events of nested teams' logs around it, outermost first
	nodes       []string      // the names of those teams, each in the one before
	kind        id.Kind       // of the log where it happened
	entity      string        // and its id
	direct      bool          // a direct message, which is in no log
}

// read unwraps an event.
func read(e event.Event) *scene {
	at := &scene{Event: event.Unwrap(e), outer: e, own: e}
	for at.own.Type == event.TeamSubTeamEvent {
		d, err := eventdata.As[event.TeamSubTeamEventData](at.own)
		var inner event.Event
		if err != nil || json.Unmarshal(d.SubTeamEvent, &inner) != nil {
			break
		}
		at.nests, at.nodes, at.own = append(at.nests, inner), append(at.nodes, d.SubTeamNodeName), inner
	}
	if d, err := eventdata.As[event.TeamMemberEventData](at.own); at.own.Type == event.TeamMemberEvent && err == nil {
		var inner event.Event
		if json.Unmarshal(d.Event, &inner) == nil {
			at.own = inner
		}
	}
	at.kind, at.entity = place(at.Subject)
	if at.Via.Route != "" {
		at.kind, at.entity = id.KindTeam, at.Via.TeamID
		if at.Via.AgentID != "" {
			at.kind, at.entity = id.KindMember, at.Via.AgentID
		}
	}
	return at
}

// place returns kind and id of the log with the name: tenant.kind.id.
func place(log string) (id.Kind, string) {
	parts := strings.SplitN(log, ".", 3)
	if len(parts) != 3 {
		return "", log
	}
	return id.Kind(parts[1]), parts[2]
}

// inTeam reports whether the event is one of a member, in the log of a team.
func (at *scene) inTeam() bool { return at.Via.AgentID != "" }

// member returns the name of who does it.
func (at *scene) member(m message) string {
	switch {
	case at.inTeam():
		return at.Via.Name()
	case at.kind == id.KindTeam:
		return theTeam
	case m.member != "":
		return m.member
	case at.kind == id.KindMember:
		return at.entity
	}
	return assistant
}

// Names of speakers outside of teams.
const (
	assistant = "assistant" // does what is done in a session
	theTeam   = "team"      // speaks for a team as a whole
)

// source returns the source type of a message where it happened.
func source(kind string) string {
	switch kind {
	case wire.TeamStatus:
		return wire.SourceTeam
	case wire.TaskPlanEvent:
		return wire.SourceTaskPlan
	}
	return wire.SourceAgent
}

// where returns what the flattened form adds to the payload.
func (at *scene) where(c *Codec, m message, n count) wire.Where {
	_, shows := place(at.outer.Subject)
	from := source(m.kind)
	w := wire.Where{EventScope: wire.TeamScoped, MemberRouteKey: at.Via.Route}
	switch {
	case from != wire.SourceAgent, at.kind == id.KindTeam && c.more:
	case at.kind == id.KindTeam: // the original has statuses and boards of teams, and nothing else
		w.EventScope, w.AgentName = wire.MemberScoped, narrate.First(m.member, theTeam)
		w.MemberRouteKey = strings.TrimPrefix(at.Via.Route+"/"+w.AgentName, "/")
	default:
		w.EventScope, w.AgentID = wire.MemberScoped, at.entity
		if !c.single {
			w.AgentName = at.member(m)
		}
	}
	if len(at.nodes) > 0 {
		w.SubTeamNodeName, from = at.nodes[0], wire.SourceSubTeam
	}
	if at.Sequence == 0 {
		return w
	}
	w.Stream = &wire.StreamEnvelope{
		TeamRunID: shows, RunVersion: wire.RunVersion, Sequence: position(at.Sequence, n.i, n.n), SourceNodeID: at.outer.Source,
		Origin: wire.OriginLocal, EventType: from + ":" + m.kind, ReceivedAt: wire.Timestamp{Time: at.outer.Time},
	}
	return w
}
