package teamwork

import (
	"fmt"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// following decides what follows from the state alone.
type following struct{ *State }

// Advance returns what follows from the state alone: the next step, none if nothing does.
func (s *State) Advance() []decision.Fact {
	if !s.Created() || s.closed {
		return nil
	}
	return following{s}.next()
}

// next is Advance for an open team.
func (fo following) next() []decision.Fact {
	if now, problem := fo.derive(); now != fo.status || now == event.TeamFailed && problem != fo.problem {
		return []decision.Fact{{ID: fmt.Sprintf("status.%d", fo.statuses+1), Data: event.TeamStatusData{
			NewStatus: now, OldStatus: fo.status, ErrorMessage: problem,
		}}}
	}
	if fo.closing != nil {
		return fo.end()
	}
	if f := fo.starts(); len(f) > 0 {
		return f
	}
	if f := fo.report(); len(f) > 0 {
		return f
	}
	return fo.boardStep()
}

// derive returns the team's status from the states of its members.
func (fo following) derive() (status, problem string) {
	if fo.closing != nil {
		return event.TeamShuttingDown, ""
	}
	coordinator := fo.members[fo.head.Definition.Coordinator]
	if coordinator.Seq == 0 {
		return event.TeamStarting, ""
	}
	for _, m := range fo.order {
		if m.working() {
			return event.TeamRunning, ""
		}
		if m.Failed != "" && problem == "" {
			problem = m.Name + ": " + m.Failed
		}
	}
	switch {
	case fo.paused:
		return event.TeamPaused, ""
	case len(fo.pending) > 0, len(fo.reports) > 0:
		return event.TeamRunning, ""
	case problem != "":
		return event.TeamFailed, problem
	}
	return event.TeamIdle, ""
}

// starts returns the members that get a log: the coordinator, and members with messages.
func (fo following) starts() []decision.Fact {
	var out []decision.Fact
	for _, m := range fo.order {
		if m.Started || m.Name != fo.head.Definition.Coordinator && !fo.wanted(m.Name) {
			continue
		}
		out = append(out, decision.Fact{ID: "start." + m.place.ID.String(), Data: event.TeamMemberStartedData{
			Name: m.Name, Kind: m.kind, ID: m.place.ID.String(),
		}})
	}
	return out
}

func (fo following) wanted(name string) bool {
	for _, p := range fo.Pending() {
		if p.Member == name {
			return true
		}
	}
	return false
}

// end ends the team after its last member has ended. It drops messages that no member has received
// by then.
func (fo following) end() []decision.Fact {
	if len(fo.Unclosed()) > 0 {
		return nil
	}
	var out []decision.Fact
	for _, p := range fo.pending {
		out = append(out, dropped(p.TeamMessageData, "closed"))
	}
	if len(out) > 0 {
		return out
	}
	return []decision.Fact{{ID: "closed", Data: event.TeamClosedData{Reason: fo.closing.Reason}}}
}

// report returns the next report.
func (fo following) report() []decision.Fact {
	if len(fo.reports) == 0 || len(fo.pending) >= MaxPending {
		return nil
	}
	r := fo.reports[0]
	t, to, _ := fo.reader(r)
	if t != nil {
		status := event.BoardCompleted
		if r.Failed {
			status = event.BoardFailed
		}
		return []decision.Fact{{ID: r.ID, Data: event.BoardUpdatedData{CallID: r.ID, TaskID: t.TaskID, NewStatus: status, AgentName: r.Member}}}
	}
	return []decision.Fact{{ID: r.ID, Data: event.TeamMessageData{
		MessageID: r.ID, Member: to.Name, Route: to.Rest, Content: r.Text, Tainted: fo.tainted,
		Sender: &event.Sender{
			Kind: event.SenderAgent, ID: fo.members[r.Member].place.ID.String(), Name: r.Member, Route: fo.route(r.Member), MessageType: "answer",
		},
	}}}
}

// boardStep returns what follows from the board: tasks whose dependencies are done are
// announced to their assignees, those that wait for one that failed are blocked.
func (fo following) boardStep() []decision.Fact {
	for _, t := range fo.board {
		if f := fo.taskStep(t); len(f) > 0 {
			return f
		}
	}
	return nil
}

func (fo following) taskStep(t *boardTask) []decision.Fact {
	ready, doomed := fo.outlook(t)
	blocked := t.Status == event.BoardBlocked && t.BySystem
	switch {
	case !blocked && t.Status != event.BoardNotStarted:
		return nil
	case ready && t.Told:
		return []decision.Fact{fo.follows(t, event.BoardQueued)}
	case ready && len(fo.pending) < MaxPending:
		return fo.announce(t)
	case doomed && !blocked:
		return []decision.Fact{fo.follows(t, event.BoardBlocked)}
	case blocked && !doomed && !ready:
		return []decision.Fact{fo.follows(t, event.BoardNotStarted)}
	}
	return nil
}

// follows is a status that follows by itself. Its id says how often the task has
// changed: the same state gives the same id.
func (fo following) follows(t *boardTask, status string) decision.Fact {
	return decision.Fact{ID: fmt.Sprintf("board.%s.%s.%d", t.TaskID, status, fo.seq), Data: event.BoardUpdatedData{
		TaskID: t.TaskID, NewStatus: status, AgentName: Notifier,
	}}
}

func (fo following) announce(t *boardTask) []decision.Fact {
	message := fmt.Sprintf("%s.%s.%d", fo.entity, t.TaskID, t.Notices+1)
	p, err := fo.roster.find(t.AssigneeName)
	if err != nil {
		return []decision.Fact{fo.follows(t, event.BoardFailed)}
	}
	return []decision.Fact{
		{ID: message, Data: event.TeamMessageData{
			MessageID: message, Member: p.Name, Route: p.Rest, Content: notification(t), TaskID: t.TaskID, Tainted: fo.tainted,
			Sender: &event.Sender{Kind: event.SenderSystem, ID: Notifier, MessageType: "task_notification"},
		}},
		fo.follows(t, event.BoardQueued),
	}
}
