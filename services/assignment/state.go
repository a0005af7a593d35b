// Package assignment is the pure reducer of a swarm task's log: it folds the log into the task's
// state, chooses the agent, and returns the events that a command calls for.
//
// It has no clock, no randomness and no I/O: times, ids and the known agents are arguments. A task
// has exactly one end. A service that dies between two events leaves a log from which a redelivery
// of the command continues.
package assignment

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// The statuses of a task, as they are on the wire. The last three are final.
const (
	StatusCreated      = "created"
	StatusQueued       = "queued"
	StatusRunning      = "running"
	StatusWaitingInput = "waiting_input"
	StatusCompleted    = event.TaskEndCompleted
	StatusFailed       = event.TaskEndFailed
	StatusCancelled    = event.TaskEndCancelled
)

// Delivered is the status with which the task service reports that the newest assignment's frame is
// queued on the agent's socket. From other senders, or about an older attempt, it has no effect.
const Delivered = "delivered"

// State is the fold of a task's log. The zero value is a log without events.
type State struct {
	Seq     uint64
	Created time.Time // zero = the task does not exist
	Deleted bool      // all else is discarded, and no event follows
	Ended   time.Time

	task     event.TaskCreatedData
	end      *event.TaskFinishedData
	endID    string // id of the event that ended it: tells how
	progress json.RawMessage
	trailing string // id of the refusal that the end by a status report entailed

	attempt
	talk
	callList
	family
	requests
}

// Task returns the task as it was created. Callers must not change its bytes.
func (s *State) Task() event.TaskCreatedData { return s.task }

// Owner returns the principal that the task belongs to; empty = none is known.
func (s *State) Owner() string { return s.task.Principal }

// Done reports whether the task has ended.
func (s *State) Done() bool { return s.end != nil }

// End returns how the task ended, nil while it is open.
func (s *State) End() *event.TaskFinishedData { return s.end }

// Waiting reports whether the task is open and unassigned. It may continue when an agent connects,
// gets free or changes.
func (s *State) Waiting() bool { return !s.Created.IsZero() && !s.Done() && s.holder == "" }

// Status returns the status of the task on the wire, empty if the task does not exist.
func (s *State) Status() string {
	switch {
	case s.Created.IsZero():
		return ""
	case s.Done():
		return s.end.Status
	case s.asking():
		return StatusWaitingInput
	case s.holder != "":
		return StatusRunning
	case s.queued || s.head.Attempt > 0:
		return StatusQueued
	}
	return StatusCreated
}

// View returns the task as it is now.
func (s *State) View() command.TaskView {
	v := command.TaskView{TaskHead: s.head, Status: s.Status(), Progress: s.progress, CreatedAt: s.Created, EndedAt: s.Ended}
	if s.Done() {
		v.Result, v.ResultRef, v.Code, v.Error = s.end.Result, s.end.ResultRef, s.end.Code, s.end.Error
	}
	return v
}

// Deadline returns when the task fails if it has no end by then, zero if it may take
// as long as it does.
func (s *State) Deadline() time.Time {
	if s.Created.IsZero() || s.task.TimeoutMS <= 0 {
		return time.Time{}
	}
	return s.Created.Add(millis(s.task.TimeoutMS))
}

// Mail returns the client's messages from before the assignment, to be delivered after it. It is
// nil once the agent has shown a sign of life.
func (s *State) Mail() []event.TaskMessagedData {
	if s.Undelivered() == nil {
		return nil
	}
	return s.mail
}

// Question returns the id of the open question to the client, or "".
func (s *State) Question() string {
	if !s.asking() {
		return ""
	}
	return s.question.id
}

func (s *State) asking() bool { return s.question != nil && !s.question.over && !s.Done() }

// overdue reports whether an open question has expired.
func (s *State) overdue(env Env) bool { return s.asking() && !env.Now.Before(s.question.due) }

// Pending returns the started calls without an outcome of the agent that has the task. A call
// whose agent has lost the task, or whose task has ended, does not start any more; if it has
// started, its outcome is still recorded.
func (s *State) Pending() []event.CallStartedData {
	var out []event.CallStartedData
	for _, id := range s.callIDs {
		if c := s.calls[id].intent; c != nil && s.current(c.TaskHead) {
			out = append(out, *c)
		}
	}
	return out
}

// Children returns the ids of the tasks that agents with this task asked for and that
// have not ended, as created.
func (s *State) Children() []string { return s.that(func(event.TaskHead) bool { return true }) }

// Orphans returns the children to cancel: this task has ended, or the agent that asked for them has
// lost it.
func (s *State) Orphans() []string {
	return s.that(func(h event.TaskHead) bool { return !s.current(h) })
}

// root returns the outermost task above this one.
func (s *State) root() string { return cmp.Or(s.task.RootID, s.head.TaskID) }

// longest is the longest time that a member in milliseconds can mean, so that sums
// with it stay dates: ten years.
const longest = 10 * 365 * 24 * time.Hour

func millis(n int64) time.Duration {
	if n > longest.Milliseconds() {
		return longest
	}
	return time.Duration(max(0, n)) * time.Millisecond
}
