package snapshot

import (
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// inside is an event of a member or of a nested team as itself.
type inside struct {
	event.Event
	route  string // of the member, or of the nested team
	member bool   // it is an event of a member
	status string // of the member from now on, if it has changed
}

func unwrap(e event.Event) inside {
	out := inside{Event: e}
	for {
		var d struct {
			Name   string       `json:"member_name"`
			Node   string       `json:"sub_team_node_name"`
			Status string       `json:"status"`
			Event  *event.Event `json:"event"`
			Sub    *event.Event `json:"sub_team_event"`
		}
		member := out.Type == event.TeamMemberEvent
		if !member && out.Type != event.TeamSubTeamEvent || json.Unmarshal(out.Data, &d) != nil {
			return out
		}
		inner, name := d.Sub, d.Node
		if member {
			inner, name = d.Event, d.Name
		}
		if inner == nil {
			return out
		}
		out = inside{Event: *inner, route: join(out.route, name), member: member, status: d.Status}
	}
}
