package teamwork

import (
	"errors"
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// ErrGap says that events of a member's log are missing before the given ones.
var ErrGap = errors.New("events of the member's log are missing")

// Incoming is an event of a member's log.
type Incoming struct {
	event.Event
	Raw     []byte // as it is stored there
	Expired bool   // older events have expired
}

// Relay returns the facts for the team's log that follow from the member's next events: their
// copies, and the events that they entail. The caller appends and applies the facts, and calls
// Relay again until it returns none. An error wraps ErrGap if the events do not continue where the
// log ends.
func (s *State) Relay(name string, news []Incoming) ([]decision.Fact, error) {
	m, err := s.own(name)
	if err != nil {
		return nil, err
	}
	if due := s.Advance(); len(due) > 0 {
		return due, nil
	}
	var out []decision.Fact
	next, status := m.Seq+1, m.Status
	for _, e := range news {
		if e.Sequence < next {
			continue
		}
		if e.From > 0 && e.From < e.Sequence || e.Sequence > next && !e.Expired {
			return nil, fmt.Errorf("%w: %s has %d to %d, the team's log ends with %d", ErrGap, name, e.From, e.Sequence, next-1)
		}
		next = e.Sequence + 1
		f, moves := m.wrap(e, &status)
		out = append(out, f)
		if moves {
			break // its consequences come before the next event
		}
	}
	return out, nil
}

// wrap returns the event as it stands in the team's log, and whether something may
// follow from it.
func (m *member) wrap(e Incoming, status *string) (f decision.Fact, moves bool) {
	f.ID = fmt.Sprintf("%s.%d", m.place.ID, e.Sequence)
	if m.kind == event.MemberTeam {
		f.Data = event.TeamSubTeamEventData{
			SubTeamNodeName: m.Name, SubTeamID: m.place.ID.String(), Seq: e.Sequence, SubTeamEvent: e.Raw,
		}
		return f, teamMoves[e.Type]
	}
	d := event.TeamMemberEventData{MemberName: m.Name, MemberID: m.place.ID.String(), Seq: e.Sequence, Event: e.Raw}
	if now, ok := event.StatusAfter(e.Event); ok && now != *status {
		d.Status, d.OldStatus = now, *status
		*status = now
	}
	f.Data = d
	return f, agentMoves[e.Type]
}

// agentMoves and teamMoves are the events of a member that may change the status of the team.
var (
	agentMoves = map[event.Type]bool{
		event.MemberCreated: true, event.MemberClosed: true, event.MessageReceived: true, event.MessageRefused: true,
		event.RunStarted: true, event.RunCompleted: true, event.RunFailed: true, event.RunCancelled: true,
	}
	teamMoves = map[event.Type]bool{
		event.TeamCreated: true, event.TeamStatus: true, event.TeamMessage: true, event.TeamClosed: true,
	}
)
