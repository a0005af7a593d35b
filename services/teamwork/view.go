package teamwork

import (
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// View returns the team as it is now.
func (s *State) View() command.TeamView {
	v := command.TeamView{
		TeamID: s.head.TeamID, Name: s.head.Definition.Name, Status: s.status, Error: s.problem, Parent: s.head.Parent,
		Definition: s.head.Definition, Board: s.tasks(), CreatedAt: s.created, Closed: s.closed,
	}
	if !s.Created() {
		return v
	}
	for _, p := range s.roster.places {
		v.Members = append(v.Members, s.member(p))
	}
	return v
}

func (s *State) member(p Place) command.MemberView {
	v := command.MemberView{Name: last(p.Route), Route: p.Route, Kind: p.Kind, Status: event.AgentUninitialized}
	if own := s.members[p.Route]; own != nil {
		v.Status = own.status
		if own.seq > 0 {
			v.ID = p.ID.String()
		}
		return v
	}
	if status := s.deep[p.Route]; status != "" {
		v.ID, v.Status = p.ID.String(), status
	}
	return v
}

// last returns the last name of a path.
func last(route string) string { return event.Via{Route: route}.Name() }
