// Package assignment is the pure reducer of a swarm task's log: it folds the log into the task's
// state, chooses the agent, and returns the events that a command calls for.
//
// It has no clock, no randomness and no I/O: times, ids and the known agents are arguments. A task
// has exactly one end. A service that dies between two events leaves a log from which a redelivery
// of the command continues.
package assignment

import (
	"encoding/json"
	"fmt"
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
	head     event.TaskHead
	end      *event.TaskFinishedData
	endID    string // id of the event that ended it: tells how
	progress json.RawMessage

	holder    string // agent that holds the task; empty = none
	assigned  *event.TaskAssignedData
	heard     time.Time // when the holder was last heard of
	confirmed bool      // the holder has it for sure
	via       string    // the connection by which it was handed the task, or spoke of it last; empty = not known
	waiting   time.Time // since when it waits for an agent
	queued    bool      // and the log has the event for it
	lost      string    // agent that it was taken from last
	lostAt    time.Time
	why       string // it was taken
	again     bool   // from an agent that is back: it gets the task first

	mail     []event.TaskMessagedData // messages of the client to the agent of the task
	question *question                // the newest
	calls    map[string]*call
	callIDs  []string // as started
	children map[string]*child
	childIDs []string           // as created
	once     map[string]bool    // ids of all events
	requests map[string]handled // requests of participants that were carried out
	closings map[uint64]uint64  // by the sequence of a question: the event with its answer, or that it got none
	trailing string             // id of the refusal that the end by a status report entailed
}

// question is a question of the agent to the client.
type question struct {
	id       string // for the client and the agent
	eventID  string
	seq      uint64
	due      time.Time
	over     bool // answered, expired, or its agent has lost the task
	answered *event.TaskMessagedData
}

// call is a tool call of the task. Intent is kept until it has its outcome.
type call struct {
	intent *event.CallStartedData
	told   int    // notifications
	ended  uint64 // sequence of the outcome
}

// child is a task that the task's agent gave to another agent. Made is kept until its end.
type child struct {
	made         *event.ChildCreatedData
	attempt      int    // whose agent asked for it
	began, ended uint64 // sequences
}

// Head returns what every event about the task repeats.
func (s *State) Head() event.TaskHead { return s.head }

// Task returns the task as it was created. Callers must not change its bytes.
func (s *State) Task() event.TaskCreatedData { return s.task }

// Owner returns the principal that the task belongs to; empty = none is known.
func (s *State) Owner() string { return s.task.Principal }

// Done reports whether the task has ended.
func (s *State) Done() bool { return s.end != nil }

// End returns how the task ended, nil while it is open.
func (s *State) End() *event.TaskFinishedData { return s.end }

// Holder returns the agent that has the task, empty if none has.
func (s *State) Holder() string { return s.holder }

// Released returns why an agent lost the task last, empty if none has.
func (s *State) Released() string { return s.why }

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

// Undelivered returns the assignment to deliver: not confirmed, and its agent has shown no sign of
// life since. It is nil if all is delivered.
func (s *State) Undelivered() *event.TaskAssignedData {
	if s.Done() || s.holder == "" || s.confirmed {
		return nil
	}
	return s.assigned
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
func (s *State) Children() []string { return s.childrenThat(func(event.TaskHead) bool { return true }) }

// Orphans returns the children to cancel: this task has ended, or the agent that asked for them has
// lost it.
func (s *State) Orphans() []string {
	return s.childrenThat(func(h event.TaskHead) bool { return !s.current(h) })
}

// Given returns the ids of all tasks that agents with this task asked for.
func (s *State) Given() []string { return s.childIDs }

func (s *State) childrenThat(f func(event.TaskHead) bool) []string {
	var out []string
	for _, id := range s.childIDs {
		if c := s.children[id].made; c != nil && f(c.TaskHead) {
			out = append(out, id)
		}
	}
	return out
}

// current reports whether who did something under the head still has the task.
func (s *State) current(h event.TaskHead) bool {
	return !s.Done() && s.holder != "" && h.AgentID == s.holder && h.Attempt == s.head.Attempt
}

// Child returns the command that creates the child of a spawn which was accepted.
// It is false if it was not, or the child has ended.
func (s *State) Child(d command.SpawnChild) (command.NewTask, bool) {
	childID := s.childMade(d)
	c := s.children[childID]
	if c == nil || c.made == nil {
		return command.NewTask{}, false
	}
	caller, err := json.Marshal(struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}{c.made.AgentID, c.made.AgentName})
	if err != nil { // two strings can be encoded
		return command.NewTask{}, false
	}
	return command.NewTask{
		TaskID: childID, RequestID: d.RequestID, ClientID: s.head.ClientID, AgentID: d.TargetID, AgentName: d.TargetName,
		TaskType: d.TaskType, Data: d.Data, DataRef: d.DataRef, TimeoutMS: d.TimeoutMS, ParentID: s.head.TaskID, Depth: s.task.Depth + 1, RootID: s.root(),
		Chain: append(append([]string(nil), s.task.Chain...), c.made.AgentName), Caller: caller, Session: s.task.Session,
	}, true
}

// Apply folds the next event of the log into s. Unknown types and members are passed
// over; an error means that the log holds something no writer of this program
// appends.
func (s *State) Apply(e event.Event) error {
	if s.Deleted {
		return fmt.Errorf("task log %s, seq %d: %s follows the deletion", e.Subject, e.Sequence, e.Type)
	}
	if e.Type == event.TaskDeleted {
		*s = State{Seq: e.Sequence, Deleted: true}
		return nil
	}
	s.Seq = e.Sequence
	if s.once == nil {
		s.once, s.calls, s.children = map[string]bool{}, map[string]*call{}, map[string]*child{}
		s.requests, s.closings = map[string]handled{}, map[uint64]uint64{}
	}
	s.once[e.ID] = true
	fold, ok := folds[e.Type]
	if !ok {
		return nil
	}
	if err := fold(s, e); err != nil {
		return fmt.Errorf("task log %s, seq %d: %w", e.Subject, e.Sequence, err)
	}
	return s.note(e)
}

// longest is the longest time that a member in milliseconds can mean, so that sums
// with it stay dates: ten years.
const longest = 10 * 365 * 24 * time.Hour

func millis(n int64) time.Duration {
	if n > longest.Milliseconds() {
		return longest
	}
	return time.Duration(max(0, n)) * time.Millisecond
}
