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

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Notifier is who tells members of tasks on the board that are theirs.
const Notifier = "system.task_notifier"

// State is the fold of a team's log. The zero value is a log without events. It is not
// safe for concurrent use.
type State struct {
	seq         uint64
	created     time.Time
	head        event.TeamCreatedData
	entity      id.Entity
	roster      *roster
	members     map[string]*member // by name: the team's own
	order       []*member
	deep        map[string]string // by route: of the members of nested teams, once known
	messages    map[string]bool   // ids of accepted messages
	pending     []letter
	delegations map[string]*delegation // of agents of the swarm, by message, until they are done
	reports     []report               // of agents of the swarm, due
	status      string                 // as shown
	problem     string                 // with status ERROR
	statuses    int                    // shown so far
	tainted     bool                   // a member has read untrusted output, and messages may repeat it
	paused      bool
	flips       int    // how often it was paused or resumed
	pausedAt    uint64 // seq of the newest pause: messages after it have not been handed on while it lasts
	closing     *event.TeamClosingData
	closed      bool
	once        map[string]bool // ids of commands that had their effect
	board       []*boardTask
	acts        map[string]event.TeamActedData // outcomes by call
	questions   map[string]question            // by call
	inputs      map[string]string              // call by question
	busyFrom    uint64                         // 1 + seq before the work in progress began; 0 = the team is idle
	window      window
}

// member is one of the team's own members.
type member struct {
	event.MemberDefinition
	place   Place
	kind    string          // agent, team
	started bool            // it is to have a log
	seq     uint64          // relayed so far
	status  string          // of an agent event.AgentStatus, of a team its status
	runs    map[string]bool // an agent's runs that have not ended
	halted  bool            // a team: it is paused
	flip    int             // the team's newest pause or resumption that it follows
	failed  string          // why the newest run failed; empty if it did not
	closed  bool
}

// working reports whether the member does something, or waits for people to let it.
func (m *member) working() bool {
	if m.kind == event.MemberTeam {
		return m.status == event.TeamRunning || m.status == event.TeamStarting && m.seq > 0
	}
	return len(m.runs) > 0
}

// letter is a message that its member has not shown yet.
type letter struct {
	event.TeamMessageData
	seq uint64
}

type question struct {
	agent id.Entity
	input string
}

type boardTask struct {
	event.BoardTask
	notices  int  // how often its assignee was told
	told     bool // its assignee knows its pending status
	bySystem bool // its status follows by itself
}

// Source is a member whose log is to be followed.
type Source struct {
	Name string // of the member
	Kind string // agent, team
	ID   id.Entity
	Seq  uint64 // relayed so far
}

// Created reports whether the team exists.
func (s *State) Created() bool { return !s.created.IsZero() }

// Closed reports whether the team has ended.
func (s *State) Closed() bool { return s.closed }

// Closing reports whether the team shuts down, or has.
func (s *State) Closing() bool { return s.closing != nil }

// Paused reports whether members get no messages.
func (s *State) Paused() bool { return s.paused }

// Seq returns the sequence of the last event that was folded.
func (s *State) Seq() uint64 { return s.seq }

// Parent returns the team that this one is a member of, or nil.
func (s *State) Parent() *event.TeamParent { return s.head.Parent }

// From returns the seq before the work in progress, or of the newest event if the team is idle.
func (s *State) From() uint64 {
	if s.busyFrom > 0 {
		return s.busyFrom - 1
	}
	return s.seq
}

// Follow returns the members that have a log, in the order of the definition.
func (s *State) Follow() []Source {
	var out []Source
	for _, m := range s.order {
		if m.started && !m.closed {
			out = append(out, Source{m.Name, m.kind, m.place.ID, m.seq})
		}
	}
	return out
}

// Unstarted returns the members that are to have a log and have not shown it yet.
func (s *State) Unstarted() []Source {
	var out []Source
	for _, m := range s.order {
		if m.started && m.seq == 0 && !m.closed {
			out = append(out, Source{Name: m.Name, Kind: m.kind, ID: m.place.ID})
		}
	}
	return out
}

// Unhalted returns the nested teams that are still to be paused, or resumed, as this
// team was by its newest pause or resumption, which has the number.
func (s *State) Unhalted() (list []Source, number int) {
	if s.closing != nil {
		return nil, s.flips
	}
	for _, m := range s.order {
		if m.kind == event.MemberTeam && m.seq > 0 && m.flip < s.flips {
			list = append(list, Source{m.Name, m.kind, m.place.ID, m.seq})
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
		return m == nil || !m.started
	})
}

// Locate returns the member that is meant by a name, a path of names or an id; by an
// empty text the coordinator. The error is the fault MEMBER_NOT_FOUND.
func (s *State) Locate(name string) (Place, error) {
	if name == "" {
		name = s.head.Definition.Coordinator
	}
	return s.roster.find(name)
}

// Question returns the question that is named by its id or by its call, answered or
// not: the agent in whose log it is, and its id there.
func (s *State) Question(name string) (agent id.Entity, inputID string, ok bool) {
	if call, is := s.inputs[name]; is {
		name = call
	}
	q, ok := s.questions[name]
	return q.agent, q.input, ok
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

// Owner returns the principal that has founded the team, or the one that it is nested in; empty = none is known.
func (s *State) Owner() string { return s.head.Principal }

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

// colleagues are the other members.
func (s *State) colleagues(of string) []event.Colleague {
	var out []event.Colleague
	for _, m := range s.order {
		if m.Name != of {
			out = append(out, event.Colleague{Name: m.Name, Role: m.Role, Kind: m.kind})
		}
	}
	return out
}
