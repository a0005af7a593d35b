package teamwork

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Place is where a member is.
type Place struct {
	Name  string    // of the team's own member that it is, or that it is in
	Rest  string    // the path within that member, if it is a team; empty = the member itself
	Route string    // the whole path: Name, or Name/Rest
	Kind  string    // of the member that Route leads to: agent, team
	ID    id.Entity // of that agent or team
}

// roster lists the members of a team, with all nested teams. It follows from the definition and the
// team's id alone.
type roster struct {
	places []Place // in the order of the definition, a nested team before its members
	routes map[string]int
	ids    map[string]int
	leaves map[string][]int  // by last name of the route
	chiefs map[string]string // route of a nested team's coordinator, by the team's route
	swarm  map[string]bool   // by route: agents of the swarm
}

func newRoster(team id.Entity, d event.TeamDefinition) (*roster, error) {
	r := &roster{
		routes: map[string]int{}, ids: map[string]int{}, leaves: map[string][]int{}, chiefs: map[string]string{}, swarm: map[string]bool{},
	}
	return r, r.add(team, d, nil)
}

func (r *roster) add(team id.Entity, d event.TeamDefinition, path []string) error {
	for _, m := range d.Members {
		way := append(path[:len(path):len(path)], m.Name)
		p := Place{Name: way[0], Rest: strings.Join(way[1:], "/"), Route: strings.Join(way, "/"), Kind: event.MemberAgent}
		name := id.MemberAgent
		if m.Team != nil {
			p.Kind, name = event.MemberTeam, id.MemberTeam
		}
		var err error
		if p.ID, err = name(team, m.Name); err != nil {
			return err
		}
		r.routes[p.Route], r.ids[p.ID.String()] = len(r.places), len(r.places)
		r.leaves[m.Name] = append(r.leaves[m.Name], len(r.places))
		r.places = append(r.places, p)
		r.swarm[p.Route] = m.Swarm()
		if m.Team != nil {
			r.chiefs[p.Route] = p.Route + "/" + m.Team.Coordinator
			if err := r.add(p.ID, *m.Team, way); err != nil {
				return err
			}
		}
	}
	return nil
}

// agent returns the agent that a message for the place reaches: of a team its coordinator.
func (r *roster) agent(p Place) Place {
	if chief, ok := r.chiefs[p.Route]; ok {
		return r.places[r.routes[chief]] // which Check has seen to be an agent
	}
	return p
}

// find returns the member with the path of names, the id, or the last name of a path if that is
// unique.
func (r *roster) find(member string) (Place, error) {
	if i, ok := r.routes[member]; ok {
		return r.places[i], nil
	}
	if i, ok := r.ids[member]; ok {
		return r.places[i], nil
	}
	switch some := r.leaves[member]; len(some) {
	case 1:
		return r.places[some[0]], nil
	case 0:
		return Place{}, fault.New(fault.MemberNotFound)
	}
	return Place{}, fault.Newf(fault.MemberNotFound, "Several members have this name. Use a path like node/member.")
}
