package teamwork

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// task returns the task on the board with the id or the name, or nil.
func (s *State) task(name string) *boardTask {
	for _, t := range s.board {
		if t.TaskID == name {
			return t
		}
	}
	for _, t := range s.board {
		if name != "" && t.TaskName == name {
			return t
		}
	}
	return nil
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

// created is the result for the model with the created tasks.
func created(d event.BoardCreatedData) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Created %d tasks:", len(d.Added))
	for _, t := range d.Tasks {
		if slices.Contains(d.Added, t.TaskID) {
			fmt.Fprintf(&b, "\n%s %s (for %s)", t.TaskID, t.TaskName, t.AssigneeName)
		}
	}
	return b.String()
}

func (s *State) boardUpdated(_ event.Event, d event.BoardUpdatedData) error {
	t := s.task(d.TaskID)
	if t == nil {
		return fmt.Errorf("the board has no task %q", d.TaskID)
	}
	if d.Repeated {
		return nil
	}
	t.Status, t.bySystem, t.told = d.NewStatus, d.AgentName == Notifier, false
	t.FileDeliverables = append(t.FileDeliverables, d.Deliverables...)
	s.reported(d.CallID)
	if d.CallID != "" {
		s.acts[d.CallID] = event.TeamActedData{CallID: d.CallID, Result: fmt.Sprintf("%s is %s.", t.TaskID, t.Status)}
	}
	return nil
}

// boardStep returns what follows from the board: tasks whose dependencies are done are
// announced to their assignees, those that wait for one that failed are blocked.
func (s *State) boardStep() []decision.Fact {
	for _, t := range s.board {
		if f := s.taskStep(t); len(f) > 0 {
			return f
		}
	}
	return nil
}

func (s *State) taskStep(t *boardTask) []decision.Fact {
	ready, doomed := s.outlook(t)
	blocked := t.Status == event.BoardBlocked && t.bySystem
	switch {
	case !blocked && t.Status != event.BoardNotStarted:
		return nil
	case ready && t.told:
		return []decision.Fact{s.follows(t, event.BoardQueued)}
	case ready && len(s.pending) < MaxPending:
		return s.announce(t)
	case doomed && !blocked:
		return []decision.Fact{s.follows(t, event.BoardBlocked)}
	case blocked && !doomed && !ready:
		return []decision.Fact{s.follows(t, event.BoardNotStarted)}
	}
	return nil
}

// outlook reports whether all dependencies of a task are done, and whether one failed
// or is blocked.
func (s *State) outlook(t *boardTask) (ready, doomed bool) {
	ready = true
	for _, id := range t.Dependencies {
		d := s.task(id)
		ready = ready && d.Status == event.BoardCompleted
		doomed = doomed || d.Status == event.BoardFailed || d.Status == event.BoardBlocked
	}
	return ready, doomed
}

// follows is a status that follows by itself. Its id says how often the task has
// changed: the same state gives the same id.
func (s *State) follows(t *boardTask, status string) decision.Fact {
	return decision.Fact{ID: fmt.Sprintf("board.%s.%s.%d", t.TaskID, status, s.seq), Data: event.BoardUpdatedData{
		TaskID: t.TaskID, NewStatus: status, AgentName: Notifier,
	}}
}

func (s *State) announce(t *boardTask) []decision.Fact {
	message := fmt.Sprintf("%s.%s.%d", s.entity, t.TaskID, t.notices+1)
	p, err := s.roster.find(t.AssigneeName)
	if err != nil {
		return []decision.Fact{s.follows(t, event.BoardFailed)}
	}
	return []decision.Fact{
		{ID: message, Data: event.TeamMessageData{
			MessageID: message, Member: p.Name, Route: p.Rest, Content: notification(t), TaskID: t.TaskID, Tainted: s.tainted,
			Sender: &event.Sender{Kind: event.SenderSystem, ID: Notifier, MessageType: "task_notification"},
		}},
		s.follows(t, event.BoardQueued),
	}
}

// notification is the message to an assignee.
func notification(t *boardTask) string {
	return fmt.Sprintf("The task %s (%s) is yours and can be started.\n\n%s\n\nSet its status with update_task_status: in_progress when you begin, "+
		"completed or failed when you end.", t.TaskID, t.TaskName, t.Description)
}
