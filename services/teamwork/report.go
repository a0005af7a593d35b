package teamwork

import (
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// report is what has come of a message to an agent of the swarm, which has none of the
// team's tools: the team writes to the colleague who asked, and keeps the board.
type report struct {
	id     string
	member *member
	letter event.TeamMessageData
	text   string
	failed bool
}

// takes notes which message a run of an agent of the swarm is for.
func (s *State) takes(m *member, messageID, run string) {
	if !m.Swarm() {
		return
	}
	for _, l := range s.pending {
		if l.MessageID == messageID && (l.TaskID != "" || l.Sender != nil && l.Sender.Kind == event.SenderAgent) {
			if m.errands == nil {
				m.errands = map[string]event.TeamMessageData{}
			}
			m.errands[run] = l.TeamMessageData
		}
	}
}

// hasDone notes what is to be reported of a run that has ended. Who stopped it knows.
func (s *State) hasDone(m *member, run, content, problem string, ended event.Type) {
	l, ok := m.errands[run]
	delete(m.errands, run)
	if !ok || ended == event.RunCancelled {
		return
	}
	r := report{id: s.entity.String() + "." + run + ".report", member: m, letter: l, text: content, failed: ended == event.RunFailed}
	if r.failed {
		r.text = "I could not do it: " + orElse(problem, "it failed")
	}
	if _, _, ok := s.reader(r); ok {
		s.reports = append(s.reports, r)
	}
}

// reader returns whom a report is for: a task on the board, or else a member of this team.
func (s *State) reader(r report) (t *boardTask, to Place, ok bool) {
	if t = s.task(r.letter.TaskID); t != nil {
		return t, to, true
	}
	if r.letter.Sender == nil || r.text == "" {
		return nil, to, false
	}
	route, ours := strings.CutPrefix(r.letter.Sender.Route, s.route(""))
	if !ours {
		return nil, to, false
	}
	to, err := s.roster.find(route)
	return nil, to, err == nil
}

// report returns the next report.
func (s *State) report() []Fact {
	if len(s.reports) == 0 || len(s.pending) >= MaxPending {
		return nil
	}
	r := s.reports[0]
	t, to, _ := s.reader(r)
	if t != nil {
		status := event.BoardCompleted
		if r.failed {
			status = event.BoardFailed
		}
		return []Fact{{r.id, event.BoardUpdatedData{CallID: r.id, TaskID: t.TaskID, NewStatus: status, AgentName: r.member.Name}}}
	}
	return []Fact{{r.id, event.TeamMessageData{
		MessageID: r.id, Member: to.Name, Route: to.Rest, Content: r.text,
		Sender: &event.Sender{
			Kind: event.SenderAgent, ID: r.member.place.ID.String(), Name: r.member.Name, Route: s.route(r.member.Name), MessageType: "answer",
		},
	}}}
}

// reported takes a report off those that are due.
func (s *State) reported(reportID string) {
	if len(s.reports) > 0 && s.reports[0].id == reportID {
		s.reports = s.reports[1:]
	}
}
