package teamwork

import (
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Apply folds the next event of the log into s. Unknown types are passed over; an error
// means that the log holds something no writer of this program appends.
func (s *State) Apply(e event.Event) error {
	s.seq = e.Sequence
	s.window.take(e)
	fold, ok := folds[e.Type]
	if !ok {
		return nil
	}
	if s.members == nil && e.Type != event.TeamCreated {
		return fmt.Errorf("team log %s, seq %d: it does not begin with %s", e.Subject, e.Sequence, event.TeamCreated)
	}
	if err := fold(s, e); err != nil {
		return fmt.Errorf("team log %s, seq %d: %w", e.Subject, e.Sequence, err)
	}
	return nil
}

var folds = map[event.Type]func(*State, event.Event) error{
	event.TeamCreated:        with((*State).teamCreated),
	event.TeamMemberStarted:  with((*State).memberStarted),
	event.TeamStatus:         with((*State).teamStatus),
	event.TeamMessage:        with((*State).message),
	event.TeamMessageDropped: with((*State).messageDropped),
	event.TeamMemberEvent:    with((*State).agentEvent),
	event.TeamSubTeamEvent:   with((*State).subTeamEvent),
	event.TeamStopped:        with((*State).stopped),
	event.TeamPauseBegun:     with((*State).pauseBegun),
	event.TeamResumed:        with((*State).resumed),
	event.TeamClosing:        with((*State).closingBegun),
	event.TeamClosed:         with((*State).teamClosed),
	event.BoardCreated:       with((*State).boardCreated),
	event.BoardUpdated:       with((*State).boardUpdated),
}

func with[T event.Data](f func(*State, event.Event, T) error) func(*State, event.Event) error {
	return func(s *State, e event.Event) error {
		d, err := eventdata.As[T](e)
		if err != nil {
			return err
		}
		return f(s, e, d)
	}
}

func (s *State) teamCreated(e event.Event, d event.TeamCreatedData) error {
	log, err := subject.ParseName(e.Subject)
	if err != nil {
		return err
	}
	if err := s.begin(log.Entity, e.Time, d); err != nil {
		return err
	}
	s.status, s.busyFrom = event.TeamStarting, e.Sequence
	return nil
}

// begin makes the state that of a team in which nothing has happened.
func (s *State) begin(team id.Entity, created time.Time, d event.TeamCreatedData) error {
	var err error
	if s.roster, err = newRoster(team, d.Definition); err != nil {
		return err
	}
	s.created, s.head, s.entity = created, d, team
	s.members, s.deep = map[string]*member{}, map[string]string{}
	s.messages, s.once, s.acts = set{}, set{}, map[string]event.TeamActedData{}
	s.questions, s.inputs = map[string]question{}, map[string]string{}
	s.delegations = map[string]*delegation{}
	for _, m := range d.Definition.Members {
		place, err := s.roster.find(m.Name)
		if err != nil {
			return err
		}
		n := &member{MemberDefinition: m, place: place, kind: place.Kind, memberState: memberState{Status: event.AgentUninitialized, Runs: set{}}}
		s.members[m.Name], s.order = n, append(s.order, n)
	}
	return nil
}

func (s *State) memberStarted(_ event.Event, d event.TeamMemberStartedData) error {
	m, err := s.own(d.Name)
	if err == nil {
		m.Started = true
	}
	return err
}

func (s *State) teamStatus(_ event.Event, d event.TeamStatusData) error {
	s.status, s.problem = d.NewStatus, d.ErrorMessage
	s.statuses++
	if d.NewStatus != event.TeamRunning && d.NewStatus != event.TeamStarting {
		s.busyFrom = 0
	}
	return nil
}

func (s *State) message(e event.Event, d event.TeamMessageData) error {
	s.messages[d.MessageID] = true
	s.tainted = s.tainted || d.Tainted
	s.reported(d.MessageID)
	s.expects(d, s.roster)
	s.pending = append(s.pending, letter{TeamMessageData: d, Seq: e.Sequence})
	s.busy(e)
	if d.CallID != "" {
		s.acts[d.CallID] = event.TeamActedData{CallID: d.CallID, Result: "Message sent to " + d.Member + "."}
	}
	if t := s.task(d.TaskID); t != nil {
		t.Notices++
		t.Told = true
	}
	return nil
}

func (s *State) busy(e event.Event) {
	if s.busyFrom == 0 {
		s.busyFrom = e.Sequence
	}
}

func (s *State) messageDropped(_ event.Event, d event.TeamMessageDroppedData) error {
	s.arrived(d.MessageID)
	delete(s.delegations, d.MessageID)
	return nil
}

func (s *State) stopped(_ event.Event, d event.TeamStoppedData) error {
	s.once[d.CommandID] = true
	return nil
}

func (s *State) pauseBegun(e event.Event, d event.TeamPausedData) error {
	s.paused, s.pausedAt, s.once[d.CommandID] = true, e.Sequence, true
	s.flip(s.order)
	return nil
}

func (s *State) resumed(_ event.Event, d event.TeamResumedData) error {
	s.paused, s.once[d.CommandID] = false, true
	s.flip(s.order)
	return nil
}

func (s *State) closingBegun(_ event.Event, d event.TeamClosingData) error {
	s.closing, s.once[d.CommandID] = &d, true
	return nil
}

func (s *State) teamClosed(event.Event, event.TeamClosedData) error {
	s.closed = true
	return nil
}

func (s *State) agentEvent(e event.Event, d event.TeamMemberEventData) error {
	m, err := s.own(d.MemberName)
	if err != nil {
		return err
	}
	m.Seq = d.Seq
	if d.Status != "" {
		m.Status = d.Status
	}
	inner := event.Unwrap(e)
	if inner.Type == event.MessageDelta || inner.Type == event.ReasoningDelta { // most of the log, and nothing follows from it
		return nil
	}
	s.window.note(inner)
	s.ask(inner, s.roster)
	s.taint(inner)
	if err := s.deeds(inner); err != nil {
		return err
	}
	return s.life(e, m, inner)
}

// life folds the state of a member.
func (s *State) life(e event.Event, m *member, inner event.Event) error {
	switch inner.Type {
	case event.MessageReceived:
		d, err := eventdata.As[event.MessageReceivedData](inner)
		if err != nil {
			return err
		}
		s.arrived(d.MessageID)
		m.Runs[d.RunID] = true
		s.busy(e)
	case event.MessageRefused:
		d, err := eventdata.As[event.MessageRefusedData](inner)
		if err != nil {
			return err
		}
		s.arrived(d.MessageID)
	case event.RunStarted:
		m.Failed = ""
	case event.RunCompleted, event.RunFailed, event.RunCancelled:
		return m.ended(inner)
	case event.MemberClosed:
		m.Closed = true
		clear(m.Runs)
	}
	return nil
}

func (s *State) subTeamEvent(e event.Event, d event.TeamSubTeamEventData) error {
	m, err := s.own(d.SubTeamNodeName)
	if err != nil {
		return err
	}
	m.Seq = d.Seq
	inner := event.Unwrap(e)
	if inner.Type == event.MessageDelta || inner.Type == event.ReasoningDelta {
		return nil
	}
	s.window.note(inner)
	s.ask(inner, s.roster)
	s.taint(inner)
	s.below(inner)
	if err := s.deeds(inner); err != nil {
		return err
	}
	if inner.Via.AgentID != "" || inner.Via.Route != m.Name {
		return nil
	}
	return s.teamLife(e, m, inner)
}

// teamLife folds the state of a nested team.
func (s *State) teamLife(e event.Event, m *member, inner event.Event) error {
	switch inner.Type {
	case event.TeamCreated:
		m.Status = event.TeamStarting
	case event.TeamStatus:
		d, err := eventdata.As[event.TeamStatusData](inner)
		if err != nil {
			return err
		}
		m.Status, m.Failed = d.NewStatus, ""
		if d.NewStatus == event.TeamFailed {
			m.Failed = orElse(d.ErrorMessage, "a member failed")
		}
	case event.TeamMessage:
		d, err := eventdata.As[event.TeamMessageData](inner)
		if err != nil {
			return err
		}
		s.arrived(d.MessageID)
		s.busy(e)
		if m.Status == event.TeamIdle || m.Status == event.TeamFailed {
			m.Status = event.TeamRunning // its own next event says so, too
		}
	case event.TeamPauseBegun:
		s.halt(m, true)
	case event.TeamResumed:
		s.halt(m, false)
	case event.TeamClosed:
		m.Closed = true
	}
	return nil
}

// deeds keeps the results of delegations, from events of agents and nested teams.
func (s *State) deeds(inner event.Event) error {
	r, err := s.follow(inner)
	if r == nil || err != nil {
		return err
	}
	if _, _, ok := s.reader(*r); ok {
		r.ID = s.entity.String() + "." + r.ID
		s.reports = append(s.reports, *r)
	}
	return nil
}

// reader returns the target of a report: a task on the board, or else a member of this team.
func (s *State) reader(r report) (t *boardTask, to Place, ok bool) {
	if t = s.task(r.Letter.TaskID); t != nil {
		return t, to, true
	}
	if r.Letter.Sender == nil || r.Text == "" {
		return nil, to, false
	}
	route, ours := strings.CutPrefix(r.Letter.Sender.Route, s.route(""))
	if !ours {
		return nil, to, false
	}
	to, err := s.roster.find(route)
	return nil, to, err == nil
}

// taint notes that a member, or one of a nested team, has read untrusted output. It may have told others before the team
// has this event; its calls say so, too.
func (s *State) taint(inner event.Event) {
	switch inner.Type {
	case event.ToolCompleted:
		if d, err := eventdata.As[event.ToolCompletedData](inner); err == nil {
			s.tainted = s.tainted || d.Untrusted
		}
	case event.ToolFailed:
		if d, err := eventdata.As[event.ToolFailedData](inner); err == nil {
			s.tainted = s.tainted || d.Untrusted
		}
	}
}

func (s *State) boardCreated(_ event.Event, d event.BoardCreatedData) error {
	s.tainted = s.tainted || d.Tainted
	for _, t := range d.Tasks {
		if s.task(t.TaskID) == nil {
			s.board = append(s.board, &boardTask{BoardTask: t})
		}
	}
	s.acts[d.CallID] = event.TeamActedData{CallID: d.CallID, Result: created(d)}
	return nil
}

func (s *State) boardUpdated(_ event.Event, d event.BoardUpdatedData) error {
	t := s.task(d.TaskID)
	if t == nil {
		return fmt.Errorf("the board has no task %q", d.TaskID)
	}
	if d.Repeated {
		return nil
	}
	t.Status, t.BySystem, t.Told = d.NewStatus, d.AgentName == Notifier, false
	t.FileDeliverables = append(t.FileDeliverables, d.Deliverables...)
	s.reported(d.CallID)
	if d.CallID != "" {
		s.acts[d.CallID] = event.TeamActedData{CallID: d.CallID, Result: fmt.Sprintf("%s is %s.", t.TaskID, t.Status)}
	}
	return nil
}
