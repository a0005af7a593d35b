package teamwork

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// taskBoard is the task board of a team.
type taskBoard struct{ board []*boardTask }

// boardTask is a task on the board. Snapshots hold it.
type boardTask struct {
	event.BoardTask `json:"task"`

	Notices  int  `json:"notices,omitempty"`   // how often its assignee was told
	Told     bool `json:"told,omitempty"`      // its assignee knows its pending status
	BySystem bool `json:"by_system,omitempty"` // its status follows by itself
}

// task returns the task on the board with the id or the name, or nil.
func (b *taskBoard) task(name string) *boardTask {
	for _, t := range b.board {
		if t.TaskID == name {
			return t
		}
	}
	for _, t := range b.board {
		if name != "" && t.TaskName == name {
			return t
		}
	}
	return nil
}

func (b *taskBoard) tasks() []event.BoardTask {
	out := make([]event.BoardTask, 0, len(b.board))
	for _, t := range b.board {
		out = append(out, t.BoardTask)
	}
	return out
}

// outlook reports whether all dependencies of a task are done, and whether one failed
// or is blocked.
func (b *taskBoard) outlook(t *boardTask) (ready, doomed bool) {
	ready = true
	for _, id := range t.Dependencies {
		d := b.task(id)
		ready = ready && d.Status == event.BoardCompleted
		doomed = doomed || d.Status == event.BoardFailed || d.Status == event.BoardBlocked
	}
	return ready, doomed
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

// notification is the message to an assignee.
func notification(t *boardTask) string {
	return fmt.Sprintf("The task %s (%s) is yours and can be started.\n\n%s\n\nSet its status with update_task_status: in_progress when you begin, "+
		"completed or failed when you end.", t.TaskID, t.TaskName, t.Description)
}
