package assignment

import (
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// errNotCreated means that the log does not begin with the task.
var errNotCreated = errors.New("the task was never created")

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
		s.handled, s.closings = map[string]handled{}, map[uint64]uint64{}
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

// folds holds the effect of each event type on the state.
var folds = map[event.Type]func(*State, event.Event) error{
	event.TaskCreated:    with((*State).foldCreated),
	event.TaskQueued:     on((*State).foldQueued),
	event.TaskAssigned:   open((*State).foldAssigned),
	event.TaskReported:   on((*State).foldReported),
	event.TaskNotified:   on((*State).foldNotified),
	event.TaskMessaged:   on((*State).foldMessaged),
	event.TaskReleased:   on((*State).foldReleased),
	event.TaskRefused:    on((*State).foldRefused),
	event.TaskAsked:      on((*State).foldAsked),
	event.TaskAskExpired: on((*State).foldAskExpired),
	event.TaskFinished:   open((*State).foldFinished),
	event.ChildCreated:   on((*State).foldChildCreated),
	event.ChildFinished:  on((*State).foldChildFinished),
	event.CallStarted:    on((*State).foldCallStarted),
	event.CallNotified:   on((*State).foldCallNotified),
	event.CallFinished:   on((*State).foldCallFinished),
}

func with[T event.Data](f func(*State, event.Event, T)) func(*State, event.Event) error {
	return func(s *State, e event.Event) error {
		d, err := eventdata.As[T](e)
		if err != nil {
			return err
		}
		f(s, e, d)
		return nil
	}
}

// on is with, for what presupposes the task.
func on[T event.Data](f func(*State, event.Event, T)) func(*State, event.Event) error {
	return func(s *State, e event.Event) error {
		if s.Created.IsZero() {
			return errNotCreated
		}
		return with(f)(s, e)
	}
}

// open is like on, for events that have no effect on a task that has ended.
func open[T event.Data](f func(*State, event.Event, T)) func(*State, event.Event) error {
	return on(func(s *State, e event.Event, d T) {
		if !s.Done() {
			f(s, e, d)
		}
	})
}

func (s *State) foldCreated(e event.Event, d event.TaskCreatedData) {
	if !s.Created.IsZero() {
		return // the first one counts; no writer appends a second
	}
	s.Created, s.waiting = e.Time, e.Time
	if s.Created.IsZero() {
		s.Created = time.Unix(0, 0).UTC() // an event without a time is an event all the same
	}
	s.task, s.head = d, d.TaskHead
}

func (s *State) foldReported(e event.Event, d event.TaskReportedData) {
	s.sign(e, d.TaskHead, d.Connection)
	if len(d.Progress) > 0 && !s.Done() {
		s.progress = d.Progress
	}
}

// foldNotified takes a notification about progress as the agent's newest word on it, as a report is.
func (s *State) foldNotified(e event.Event, d event.TaskNotifiedData) {
	s.sign(e, d.TaskHead, d.Connection)
	if d.NotificationType == "progress" && len(d.Data) > 0 && !s.Done() {
		s.progress = d.Data
	}
}

func (s *State) foldReleased(e event.Event, d event.TaskReleasedData) {
	if !s.current(d.TaskHead) {
		return
	}
	s.attempt.release(e, d)
	if s.question != nil {
		s.question.over = true // the agent that asked has lost the task
	}
}

func (s *State) foldRefused(e event.Event, d event.TaskRefusedData) {
	if s.trailing == "" && s.trails(d.By) && d.What != whatStatus {
		s.trailing = e.ID
	}
}

func (s *State) foldAsked(e event.Event, d event.TaskAskedData) {
	s.sign(e, d.TaskHead, d.Connection)
	s.question = &question{id: d.InputID, eventID: e.ID, seq: e.Sequence, due: e.Time.Add(millis(d.TimeoutMS)), over: !s.current(d.TaskHead)}
}

func (s *State) foldChildCreated(e event.Event, d event.ChildCreatedData) {
	s.sign(e, d.TaskHead, d.Connection)
	if s.children[d.ChildID] == nil {
		s.children[d.ChildID] = &child{made: &d, attempt: d.Attempt, began: e.Sequence}
		s.childIDs = append(s.childIDs, d.ChildID)
	}
}

func (s *State) foldCallStarted(e event.Event, d event.CallStartedData) {
	s.sign(e, d.TaskHead, d.Connection)
	if s.calls[d.CallID] == nil {
		s.calls[d.CallID] = &call{intent: &d}
		s.callIDs = append(s.callIDs, d.CallID)
	}
}

// foldFinished ends the task. The first end counts; no writer appends a second one,
// and a fold must not let one undo the first.
func (s *State) foldFinished(e event.Event, d event.TaskFinishedData) {
	s.end, s.endID, s.Ended = &d, e.ID, e.Time
	s.holder, s.assigned, s.mail = "", nil, nil
}
