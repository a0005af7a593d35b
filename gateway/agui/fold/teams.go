package fold

import (
	"maps"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// team is what a thread knows of the team whose log it shows. Its members are named by their routes: paths of names from this team
// on.
type team struct {
	status  string
	members []placed
	leads   map[string]string            // routes of coordinators, by those of their teams; "" = this team
	boards  map[string][]event.BoardTask // by the routes of their teams. A list is not modified
	active  map[string]string            // routes of members, by their active runs
	queued  map[string][]string          // runs that wait for the end of another one of their member, by its route

	// Of the run of the thread:
	told    map[string]bool // messages that were shown
	ended   map[string]bool // runs of members
	stopped bool            // all members were told to stop
	code    string          // of the last failure
	answer  string          // the message with the coordinator's last answer
}

// placed is a member, or a team in the team.
type placed struct {
	Route  string `json:"route"`
	Status string `json:"status"`
}

func newTeam() *team {
	return &team{
		status: event.TeamStarting, leads: map[string]string{}, boards: map[string][]event.BoardTask{}, active: map[string]string{},
		queued: map[string][]string{}, told: map[string]bool{}, ended: map[string]bool{},
	}
}

func (m *team) clone() *team {
	if m == nil {
		return nil
	}
	c := *m
	c.members, c.leads, c.boards, c.active = slices.Clone(m.members), maps.Clone(m.leads), maps.Clone(m.boards), maps.Clone(m.active)
	c.queued, c.told, c.ended = maps.Clone(m.queued), maps.Clone(m.told), maps.Clone(m.ended)
	for route, list := range c.queued {
		c.queued[route] = slices.Clone(list)
	}
	return &c
}

// joined returns the path of several routes.
func joined(routes ...string) string {
	return strings.Join(slices.DeleteFunc(routes, func(s string) bool { return s == "" }), "/")
}

// place notes the members of a team at a route, and those of teams in it.
func (m *team) place(route string, d event.TeamDefinition) {
	m.leads[route] = joined(route, d.Coordinator)
	for _, one := range d.Members {
		at := joined(route, one.Name)
		m.members = append(m.members, placed{Route: at, Status: event.AgentUninitialized})
		if one.Team != nil {
			m.place(at, *one.Team)
		}
	}
}

// speaksFor reports whether the member at the route is the coordinator of this team.
func (m *team) speaksFor(route string) bool { return route != "" && route == m.leads[""] }

// parent returns the active run of the coordinator of a member's team; a coordinator's is that of the team around it. It is empty
// for members of this team, whose coordinator speaks for it.
func (m *team) parent(route string) string {
	around := above(route)
	if m.leads[around] == route {
		around = above(around)
	}
	if around == "" {
		return ""
	}
	for run, at := range m.active {
		if at == m.leads[around] {
			return run
		}
	}
	return ""
}

// above is the route of the team that a member is in.
func above(route string) string { return route[:max(strings.LastIndexByte(route, '/'), 0)] }

// next takes the run that a member begins after another one; empty = none waits.
func (m *team) next(route string) string {
	list := m.queued[route]
	if len(list) == 0 {
		return ""
	}
	m.queued[route] = slices.Clone(list[1:])
	return list[0]
}

// leave removes a run that will not wait any more.
func (m *team) leave(route, run string) {
	m.queued[route] = slices.DeleteFunc(slices.Clone(m.queued[route]), func(r string) bool { return r == run })
}

// letter is the name of the job of a member that has to take a message.
func letter(messageID string) string { return "letter " + messageID }
