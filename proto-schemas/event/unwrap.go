package event

import (
	"encoding/json"
	"strings"
)

// maxNesting bounds the depth of Unwrap: more than the nesting of teams.
const maxNesting = 16

// Name is the last name of the route.
func (v Via) Name() string { return v.Route[strings.LastIndexByte(v.Route, '/')+1:] }

// Unwrap returns the original event of another log that a team's log wraps, with the position of e (Sequence, Stream,
// From, Subject) and its place in the team as Via. It returns any other event, and an event whose inside cannot be
// read, unchanged.
func Unwrap(e Event) Event {
	if e.Type != TeamMemberEvent && e.Type != TeamSubTeamEvent {
		return e // Most events: return without an allocation.
	}
	outer, via := e, Via{}
	for range maxNesting {
		inner, name, ok := peel(e, &via)
		if !ok {
			break
		}
		if name != "" && via.Route != "" {
			via.Route += "/"
		}
		via.Route += name
		e = inner
	}
	e.Sequence, e.Stream, e.From, e.Subject, e.Via = outer.Sequence, outer.Stream, outer.From, outer.Subject, via
	return e
}

// peel removes one layer.
func peel(e Event, via *Via) (inner Event, name string, ok bool) {
	switch e.Type {
	case TeamMemberEvent:
		d, err := As[TeamMemberEventData](e)
		if err != nil || json.Unmarshal(d.Event, &inner) != nil {
			return e, "", false
		}
		via.AgentID, via.Status, via.OldStatus = d.MemberID, d.Status, d.OldStatus
		return inner, d.MemberName, true
	case TeamSubTeamEvent:
		d, err := As[TeamSubTeamEventData](e)
		if err != nil || json.Unmarshal(d.SubTeamEvent, &inner) != nil {
			return e, "", false
		}
		via.TeamID = d.SubTeamID
		return inner, d.SubTeamNodeName, true
	}
	return e, "", false
}
