// Package teamwork is the pure reducer of a team's log: it folds the members, their work, their
// waiting messages and their board, and returns the events that a command, or an event of a
// member's own log, calls for.
//
// It has no clock, no randomness and no I/O. The team's status follows from the members' own
// events, which the log copies.
//
// A member's id derives from the team's id and the member's name: creating a member twice creates it once, and no service
// looks up the team of a member. So a member cannot change its name or its team.
package teamwork

import (
	"fmt"
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Notifier is who tells members of tasks on the board that are theirs.
const Notifier = "system.task_notifier"

// State is the fold of a team's log. The zero value is a log without events. It is not
// safe for concurrent use.
type State struct {
	seq      uint64
	created  time.Time
	head     event.TeamCreatedData
	entity   id.Entity
	status   string // as shown
	problem  string // with status ERROR
	statuses int    // shown so far
	tainted  bool   // a member has read untrusted output, and messages may repeat it
	closing  *event.TeamClosingData
	closed   bool
	once     set                            // ids of commands that had their effect
	acts     map[string]event.TeamActedData // outcomes by call
	busyFrom uint64                         // 1 + seq before the work in progress began; 0 = the team is idle

	crew
	halts
	mail
	delegated
	taskBoard
	inquiries
	window window
}

// Created reports whether the team exists.
func (s *State) Created() bool { return !s.created.IsZero() }

// Closed reports whether the team has ended.
func (s *State) Closed() bool { return s.closed }

// Closing reports whether the team shuts down, or has.
func (s *State) Closing() bool { return s.closing != nil }

// Seq returns the sequence of the last event that was folded.
func (s *State) Seq() uint64 { return s.seq }

// Parent returns the team that this one is a member of, or nil.
func (s *State) Parent() *event.TeamParent { return s.head.Parent }

// Owner returns the principal that has founded the team, or the one that it is nested in; empty = none is known.
func (s *State) Owner() string { return s.head.Principal }

// From returns the seq before the work in progress, or of the newest event if the team is idle.
func (s *State) From() uint64 {
	if s.busyFrom > 0 {
		return s.busyFrom - 1
	}
	return s.seq
}

// Recent returns the sequence after which a viewer without a position begins: the oldest
// rest in the window. If something has been open for longer, it is the last rest before it.
func (s *State) Recent() uint64 {
	if len(s.window.Rests) == 0 {
		return 0
	}
	return s.window.Rests[0].Seq
}

// Pending returns the messages that were accepted and that their member has not shown
// yet, in their order; none while the team is paused.
func (s *State) Pending() []event.TeamMessageData {
	if s.paused || s.closing != nil {
		return nil
	}
	out := make([]event.TeamMessageData, 0, len(s.pending))
	for _, l := range s.pending {
		out = append(out, l.TeamMessageData)
	}
	return out
}

// Deliverable returns the pending messages whose members have a log. The event that starts a member
// follows the message in the team's log, and a reader may see the log between the two: a command
// sent then would overtake the one that creates the member's log.
func (s *State) Deliverable() []event.TeamMessageData {
	return slices.DeleteFunc(s.Pending(), func(d event.TeamMessageData) bool {
		m := s.members[d.Member]
		return m == nil || !m.Started
	})
}

// Unhalted returns the nested teams that are still to be paused, or resumed, as this
// team was by its newest pause or resumption, which has the number.
func (s *State) Unhalted() (list []Source, number int) {
	if s.closing != nil {
		return nil, s.flips
	}
	for _, m := range s.order {
		if m.kind == event.MemberTeam && m.Seq > 0 && m.Flip < s.flips {
			list = append(list, Source{m.Name, m.kind, m.place.ID, m.Seq})
		}
	}
	return list, s.flips
}

// Unclosed returns, of a team that shuts down, the members that have yet to.
func (s *State) Unclosed() []Source {
	if s.closing == nil || s.closed {
		return nil
	}
	return s.Follow()
}

// Locate returns the member that is meant by a name, a path of names or an id; by an
// empty text the coordinator. The error is the fault MEMBER_NOT_FOUND.
func (s *State) Locate(name string) (Place, error) {
	if name == "" {
		name = s.head.Definition.Coordinator
	}
	return s.roster.find(name)
}

// Settled reports whether the team is idle: no member works, no message waits, and no event is due.
func (s *State) Settled() bool {
	if !s.Created() || s.closed {
		return true
	}
	if s.closing != nil || len(s.Unstarted()) > 0 || len(s.Pending()) > 0 {
		return false
	}
	for _, m := range s.order {
		if m.working() {
			return false
		}
	}
	return len(s.Advance()) == 0
}

// Agent returns the first event of the log of the member, which is an agent.
func (s *State) Agent(name string) (event.MemberCreatedData, error) {
	m := s.members[name]
	if m == nil || m.kind != event.MemberAgent {
		return event.MemberCreatedData{}, fmt.Errorf("team %s has no agent %q", s.entity, name)
	}
	d := event.MemberCreatedData{
		MemberID: m.place.ID.String(), TeamID: s.head.TeamID, Root: s.root(), Route: s.route(name),
		TeamName: s.head.Definition.Name, Principal: s.head.Principal, Colleagues: s.colleagues(name), MemberDefinition: m.MemberDefinition,
	}
	if p := s.head.Parent; p != nil {
		for _, c := range p.Colleagues {
			if s.members[c.Name] == nil {
				d.Colleagues = append(d.Colleagues, c)
			}
		}
	}
	return d, nil
}

// Nested returns the definition of the member, which is a team, and where it belongs.
func (s *State) Nested(name string) (event.TeamDefinition, event.TeamParent, error) {
	m := s.members[name]
	if m == nil || m.Team == nil {
		return event.TeamDefinition{}, event.TeamParent{}, fmt.Errorf("team %s has no team %q", s.entity, name)
	}
	return *m.Team, event.TeamParent{
		TeamID: s.head.TeamID, Node: name, Root: s.root(), Route: s.route(name), Colleagues: s.colleagues(name),
	}, nil
}

func (s *State) root() string {
	if p := s.head.Parent; p != nil {
		return p.Root
	}
	return s.head.TeamID
}

// route returns the path of one of the team's own members from the outermost team.
func (s *State) route(name string) string {
	if p := s.head.Parent; p != nil {
		return p.Route + "/" + name
	}
	return name
}

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
