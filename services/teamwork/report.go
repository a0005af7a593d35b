package teamwork

import (
	"strings"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// delegation is a message to an agent of the swarm whose outcome a member waits for. The agent is
// a member of the team, or of a nested team that receives the team's messages.
type delegation struct {
	letter event.TeamMessageData
	agent  Place  // agent that does it
	run    string // run of the agent; empty: none yet
}

// report is the result of a delegation. Agents of the swarm lack the team's tools, so the team
// writes to the asking colleague and updates the board.
type report struct {
	id     string
	member string // of this team: who did it, or the nested team that had it done
	letter event.TeamMessageData
	text   string
	failed bool
}

// expects notes that the sender waits for the result of a message, if an agent of the swarm gets
// it.
func (s *State) expects(l event.TeamMessageData) {
	p, err := s.roster.find(joinRoute(l.Member, l.Route))
	if err != nil || l.TaskID == "" && (l.Sender == nil || l.Sender.Kind != event.SenderAgent) {
		return
	}
	if p = s.roster.agent(p); s.roster.swarm[p.Route] {
		s.delegations[l.MessageID] = &delegation{letter: l, agent: p}
	}
}

// deeds keeps the results of delegations, from events of agents and nested teams.
func (s *State) deeds(inner event.Event) error {
	switch inner.Type {
	case event.MessageReceived, event.MessageRefused, event.TeamMessageDropped:
	case event.RunCompleted, event.RunFailed, event.RunCancelled:
		return s.hasDone(inner)
	default:
		return nil
	}
	var d struct {
		MessageID string `json:"message_id"`
		RunID     string `json:"run_id"`
	}
	if err := eventdata.Into(inner, &d); err != nil {
		return err
	}
	do := s.delegations[d.MessageID]
	switch {
	case do == nil:
	case inner.Type != event.MessageReceived:
		delete(s.delegations, d.MessageID)
	case inner.Via.Route == do.agent.Route:
		do.run = d.RunID
	}
	return nil
}

// hasDone notes the result of a finished run, to report it. A stopped run is not reported.
func (s *State) hasDone(inner event.Event) error {
	var d struct {
		RunID   string `json:"run_id"`
		Message string `json:"message"`
		Content string `json:"content"`
	}
	if err := eventdata.Into(inner, &d); err != nil {
		return err
	}
	for message, do := range s.delegations {
		if do.run != d.RunID || do.agent.Route != inner.Via.Route {
			continue
		}
		delete(s.delegations, message)
		r := report{id: s.entity.String() + "." + d.RunID + ".report", member: do.letter.Member, letter: do.letter, text: d.Content}
		if r.failed = inner.Type == event.RunFailed; r.failed {
			r.text = "I could not do it: " + orElse(d.Message, "it failed")
		}
		if _, _, ok := s.reader(r); ok && inner.Type != event.RunCancelled {
			s.reports = append(s.reports, r)
		}
		return nil
	}
	return nil
}

// reader returns the target of a report: a task on the board, or else a member of this team.
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
func (s *State) report() []decision.Fact {
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
		return []decision.Fact{{ID: r.id, Data: event.BoardUpdatedData{CallID: r.id, TaskID: t.TaskID, NewStatus: status, AgentName: r.member}}}
	}
	return []decision.Fact{{ID: r.id, Data: event.TeamMessageData{
		MessageID: r.id, Member: to.Name, Route: to.Rest, Content: r.text, Tainted: s.tainted,
		Sender: &event.Sender{
			Kind: event.SenderAgent, ID: s.members[r.member].place.ID.String(), Name: r.member, Route: s.route(r.member), MessageType: "answer",
		},
	}}}
}

// reported takes a report off those that are due.
func (s *State) reported(reportID string) {
	if len(s.reports) > 0 && s.reports[0].id == reportID {
		s.reports = s.reports[1:]
	}
}

// joinRoute returns the path of a member of the team, or of one within it.
func joinRoute(member, rest string) string {
	if rest == "" {
		return member
	}
	return member + "/" + rest
}
