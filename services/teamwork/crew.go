package teamwork

import (
	"fmt"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// crew is the members of a team, and those of nested teams.
type crew struct {
	roster  *roster
	members map[string]*member // by name: the team's own
	order   []*member
	deep    map[string]string // by route: of the members of nested teams, once known
}

// member is one of the team's own members.
type member struct {
	event.MemberDefinition
	memberState

	place Place
	kind  string // agent, team
}

// memberState is what becomes of a member. Snapshots hold it.
type memberState struct {
	Started bool   `json:"started,omitempty"` // it is to have a log
	Seq     uint64 `json:"seq,omitempty"`     // relayed so far
	Status  string `json:"status"`            // of an agent event.AgentStatus, of a team its status
	Runs    set    `json:"runs,omitempty"`    // an agent's runs that have not ended
	Halted  bool   `json:"halted,omitempty"`  // a team: it is paused
	Flip    int    `json:"flip,omitempty"`    // the team's newest pause or resumption that it follows
	Failed  string `json:"failed,omitempty"`  // why the newest run failed; empty if it did not
	Closed  bool   `json:"closed,omitempty"`
}

// working reports whether the member does something, or waits for people to let it.
func (m *member) working() bool {
	if m.kind == event.MemberTeam {
		return m.Status == event.TeamRunning || m.Status == event.TeamStarting && m.Seq > 0
	}
	return len(m.Runs) > 0
}

// ended folds the end of a run of an agent.
func (m *member) ended(inner event.Event) error {
	var d struct {
		RunID   string `json:"run_id"`
		Message string `json:"message"`
	}
	if err := eventdata.Into(inner, &d); err != nil {
		return err
	}
	delete(m.Runs, d.RunID)
	if inner.Type == event.RunFailed {
		m.Failed = orElse(d.Message, "the run failed")
	}
	return nil
}

// Source is a member whose log is to be followed.
type Source struct {
	Name string // of the member
	Kind string // agent, team
	ID   id.Entity
	Seq  uint64 // relayed so far
}

// own returns one of the team's own members.
func (cr *crew) own(name string) (*member, error) {
	m := cr.members[name]
	if m == nil {
		return nil, fmt.Errorf("it has no member %q", name)
	}
	return m, nil
}

// Follow returns the members that have a log, in the order of the definition.
func (cr *crew) Follow() []Source {
	var out []Source
	for _, m := range cr.order {
		if m.Started && !m.Closed {
			out = append(out, Source{m.Name, m.kind, m.place.ID, m.Seq})
		}
	}
	return out
}

// Unstarted returns the members that are to have a log and have not shown it yet.
func (cr *crew) Unstarted() []Source {
	var out []Source
	for _, m := range cr.order {
		if m.Started && m.Seq == 0 && !m.Closed {
			out = append(out, Source{Name: m.Name, Kind: m.kind, ID: m.place.ID})
		}
	}
	return out
}

// colleagues are the other members.
func (cr *crew) colleagues(of string) []event.Colleague {
	var out []event.Colleague
	for _, m := range cr.order {
		if m.Name != of {
			out = append(out, event.Colleague{Name: m.Name, Role: m.Role, Kind: m.kind})
		}
	}
	return out
}

// below keeps the statuses of nested teams and their members, for the view.
func (cr *crew) below(inner event.Event) {
	status := inner.Via.Status
	if inner.Via.AgentID == "" && inner.Type == event.TeamStatus {
		if d, err := eventdata.As[event.TeamStatusData](inner); err == nil {
			status = d.NewStatus
		}
	}
	if inner.Type == event.TeamCreated {
		status = event.TeamStarting
	}
	if status != "" {
		cr.deep[inner.Via.Route] = status
	}
}

// member returns a member for the view.
func (cr *crew) member(p Place) command.MemberView {
	v := command.MemberView{Name: last(p.Route), Route: p.Route, Kind: p.Kind, Status: event.AgentUninitialized}
	if own := cr.members[p.Route]; own != nil {
		v.Status = own.Status
		if own.Seq > 0 {
			v.ID = p.ID.String()
		}
		return v
	}
	if status := cr.deep[p.Route]; status != "" {
		v.ID, v.Status = p.ID.String(), status
	}
	return v
}

// last returns the last name of a path.
func last(route string) string { return event.Via{Route: route}.Name() }
