package teamwork

import (
	"fmt"
	"slices"
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
	s.messages, s.once, s.acts = map[string]bool{}, map[string]bool{}, map[string]event.TeamActedData{}
	s.questions, s.inputs = map[string]question{}, map[string]string{}
	s.delegations = map[string]*delegation{}
	for _, m := range d.Definition.Members {
		place, err := s.roster.find(m.Name)
		if err != nil {
			return err
		}
		n := &member{MemberDefinition: m, place: place, kind: place.Kind, status: event.AgentUninitialized, runs: map[string]bool{}}
		s.members[m.Name], s.order = n, append(s.order, n)
	}
	return nil
}

func (s *State) own(name string) (*member, error) {
	m := s.members[name]
	if m == nil {
		return nil, fmt.Errorf("it has no member %q", name)
	}
	return m, nil
}

func (s *State) memberStarted(_ event.Event, d event.TeamMemberStartedData) error {
	m, err := s.own(d.Name)
	if err == nil {
		m.started = true
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
	s.expects(d)
	s.pending = append(s.pending, letter{d, e.Sequence})
	s.busy(e)
	if d.CallID != "" {
		s.acts[d.CallID] = event.TeamActedData{CallID: d.CallID, Result: "Message sent to " + d.Member + "."}
	}
	if t := s.task(d.TaskID); t != nil {
		t.notices++
		t.told = true
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

// arrived takes a message off those that are to be handed on.
func (s *State) arrived(messageID string) {
	s.pending = slices.DeleteFunc(s.pending, func(m letter) bool { return m.MessageID == messageID })
}

func (s *State) stopped(_ event.Event, d event.TeamStoppedData) error {
	s.once[d.CommandID] = true
	return nil
}

func (s *State) pauseBegun(e event.Event, d event.TeamPausedData) error {
	s.paused, s.pausedAt, s.once[d.CommandID] = true, e.Sequence, true
	s.flipped()
	return nil
}

func (s *State) resumed(_ event.Event, d event.TeamResumedData) error {
	s.paused, s.once[d.CommandID] = false, true
	s.flipped()
	return nil
}

// flipped notes that nested teams are to follow, but for those that need not.
func (s *State) flipped() {
	s.flips++
	for _, m := range s.order {
		if m.halted == s.paused || m.seq == 0 {
			m.flip = s.flips
		}
	}
}

// halt notes that a nested team was paused or resumed.
func (s *State) halt(m *member, paused bool) {
	if m.halted = paused; paused == s.paused {
		m.flip = s.flips
	}
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
	m.seq = d.Seq
	if d.Status != "" {
		m.status = d.Status
	}
	inner := event.Unwrap(e)
	if inner.Type == event.MessageDelta || inner.Type == event.ReasoningDelta { // most of the log, and nothing follows from it
		return nil
	}
	s.window.note(inner)
	s.ask(inner)
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
		m.runs[d.RunID] = true
		s.busy(e)
	case event.MessageRefused:
		d, err := eventdata.As[event.MessageRefusedData](inner)
		if err != nil {
			return err
		}
		s.arrived(d.MessageID)
	case event.RunStarted:
		m.failed = ""
	case event.RunCompleted, event.RunFailed, event.RunCancelled:
		return s.runEnded(m, inner)
	case event.MemberClosed:
		m.closed = true
		clear(m.runs)
	}
	return nil
}

func (s *State) runEnded(m *member, inner event.Event) error {
	var d struct {
		RunID   string `json:"run_id"`
		Message string `json:"message"`
	}
	if err := eventdata.Into(inner, &d); err != nil {
		return err
	}
	delete(m.runs, d.RunID)
	if inner.Type == event.RunFailed {
		m.failed = orElse(d.Message, "the run failed")
	}
	return nil
}

func (s *State) subTeamEvent(e event.Event, d event.TeamSubTeamEventData) error {
	m, err := s.own(d.SubTeamNodeName)
	if err != nil {
		return err
	}
	m.seq = d.Seq
	inner := event.Unwrap(e)
	if inner.Type == event.MessageDelta || inner.Type == event.ReasoningDelta {
		return nil
	}
	s.window.note(inner)
	s.ask(inner)
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
		m.status = event.TeamStarting
	case event.TeamStatus:
		d, err := eventdata.As[event.TeamStatusData](inner)
		if err != nil {
			return err
		}
		m.status, m.failed = d.NewStatus, ""
		if d.NewStatus == event.TeamFailed {
			m.failed = orElse(d.ErrorMessage, "a member failed")
		}
	case event.TeamMessage:
		d, err := eventdata.As[event.TeamMessageData](inner)
		if err != nil {
			return err
		}
		s.arrived(d.MessageID)
		s.busy(e)
		if m.status == event.TeamIdle || m.status == event.TeamFailed {
			m.status = event.TeamRunning // its own next event says so, too
		}
	case event.TeamPauseBegun:
		s.halt(m, true)
	case event.TeamResumed:
		s.halt(m, false)
	case event.TeamClosed:
		m.closed = true
	}
	return nil
}

// below keeps the statuses of nested teams and their members, for the view.
func (s *State) below(inner event.Event) {
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
		s.deep[inner.Via.Route] = status
	}
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

// ask keeps the questions about tool calls, answered ones too: the agent's log knows
// whose answer counted.
func (s *State) ask(inner event.Event) {
	if inner.Type != event.InputRequested {
		return
	}
	d, err := eventdata.As[event.InputRequestedData](inner)
	if err != nil || d.Scope != event.ScopeTool && d.Scope != event.ScopeBudget && d.Scope != event.ScopeAgent {
		return
	}
	call := d.CallID
	if d.Scope != event.ScopeTool {
		call = d.InputID
	}
	if p, err := s.roster.find(inner.Via.Route); err == nil {
		s.questions[call] = question{agent: p.ID, input: d.InputID}
		s.inputs[d.InputID] = call
	}
}
