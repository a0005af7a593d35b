package teamwork

import (
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// Advance returns what follows from the state alone: the next step, none if nothing does.
func (s *State) Advance() []decision.Fact {
	if !s.Created() || s.closed {
		return nil
	}
	if now, problem := s.derive(); now != s.status || now == event.TeamFailed && problem != s.problem {
		return []decision.Fact{{ID: fmt.Sprintf("status.%d", s.statuses+1), Data: event.TeamStatusData{
			NewStatus: now, OldStatus: s.status, ErrorMessage: problem,
		}}}
	}
	if s.closing != nil {
		return s.end()
	}
	if f := s.starts(); len(f) > 0 {
		return f
	}
	if f := s.report(); len(f) > 0 {
		return f
	}
	return s.boardStep()
}

// derive returns the team's status from the states of its members.
func (s *State) derive() (status, problem string) {
	if s.closing != nil {
		return event.TeamShuttingDown, ""
	}
	coordinator := s.members[s.head.Definition.Coordinator]
	if coordinator.seq == 0 {
		return event.TeamStarting, ""
	}
	for _, m := range s.order {
		if m.working() {
			return event.TeamRunning, ""
		}
		if m.failed != "" && problem == "" {
			problem = m.Name + ": " + m.failed
		}
	}
	switch {
	case s.paused:
		return event.TeamPaused, ""
	case len(s.pending) > 0, len(s.reports) > 0:
		return event.TeamRunning, ""
	case problem != "":
		return event.TeamFailed, problem
	}
	return event.TeamIdle, ""
}

// starts returns the members that get a log: the coordinator, and members with messages.
func (s *State) starts() []decision.Fact {
	var out []decision.Fact
	for _, m := range s.order {
		if m.started || m.Name != s.head.Definition.Coordinator && !s.wanted(m.Name) {
			continue
		}
		out = append(out, decision.Fact{ID: "start." + m.place.ID.String(), Data: event.TeamMemberStartedData{
			Name: m.Name, Kind: m.kind, ID: m.place.ID.String(),
		}})
	}
	return out
}

func (s *State) wanted(name string) bool {
	for _, p := range s.Pending() {
		if p.Member == name {
			return true
		}
	}
	return false
}

// end ends the team after its last member has ended. It drops messages that no member has received
// by then.
func (s *State) end() []decision.Fact {
	if len(s.Unclosed()) > 0 {
		return nil
	}
	var out []decision.Fact
	for _, p := range s.pending {
		out = append(out, dropped(p.TeamMessageData, "closed"))
	}
	if len(out) > 0 {
		return out
	}
	return []decision.Fact{{ID: "closed", Data: event.TeamClosedData{Reason: s.closing.Reason}}}
}

func dropped(m event.TeamMessageData, reason string) decision.Fact {
	return decision.Fact{ID: m.MessageID + ".dropped", Data: event.TeamMessageDroppedData{MessageID: m.MessageID, Member: m.Member, Reason: reason}}
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
