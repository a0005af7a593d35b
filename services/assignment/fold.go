package assignment

import (
	"errors"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxMail is how many messages are kept for an agent that gets the task later: more
// than a person types while a task waits. The newest count.
const maxMail = 32

// errNotCreated says that the log does not begin with the task.
var errNotCreated = errors.New("the task was never created")

// folds holds the effect of each event type on the state.
var folds = map[event.Type]func(*State, event.Event) error{
	event.TaskCreated:    with((*State).foldCreated),
	event.TaskQueued:     on((*State).foldQueued),
	event.TaskAssigned:   on((*State).foldAssigned),
	event.TaskReported:   on((*State).foldReported),
	event.TaskNotified:   on((*State).foldNotified),
	event.TaskMessaged:   on((*State).foldMessaged),
	event.TaskReleased:   on((*State).foldReleased),
	event.TaskRefused:    on((*State).foldRefused),
	event.TaskAsked:      on((*State).foldAsked),
	event.TaskAskExpired: on((*State).foldAskExpired),
	event.TaskFinished:   on((*State).foldFinished),
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

func (s *State) foldQueued(event.Event, event.TaskQueuedData) { s.queued = true }

func (s *State) foldAssigned(e event.Event, d event.TaskAssignedData) {
	if s.Done() {
		return
	}
	s.head.AgentID, s.head.AgentName, s.head.Attempt = d.AgentID, d.AgentName, d.Attempt
	s.holder, s.assigned, s.heard, s.confirmed, s.queued, s.via = d.AgentID, &d, e.Time, false, false, ""
}

// sign notes a sign of life of the holder.
func (s *State) sign(e event.Event, h event.TaskHead, connection string) {
	if !s.current(h) {
		return
	}
	s.heard, s.confirmed = e.Time, true
	if connection != "" {
		s.via = connection
	}
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

func (s *State) foldMessaged(e event.Event, d event.TaskMessagedData) {
	if q := s.question; d.InputID != "" && q != nil && q.id == d.InputID && !q.over {
		q.over, q.answered = true, &d
		s.closings[q.seq] = e.Sequence
		return
	}
	s.mail = append(s.mail, d)
	if len(s.mail) > maxMail {
		s.mail = s.mail[1:]
	}
}

func (s *State) foldReleased(e event.Event, d event.TaskReleasedData) {
	if !s.current(d.TaskHead) {
		return
	}
	s.lost, s.lostAt, s.waiting, s.again, s.why = s.holder, e.Time, e.Time, d.Reason == reasonSilent, d.Reason
	s.holder, s.assigned, s.confirmed, s.queued = "", nil, false, false
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

func (s *State) foldAskExpired(e event.Event, d event.TaskAskExpiredData) {
	if s.question != nil && s.question.id == d.InputID {
		s.question.over = true
		s.closings[s.question.seq] = e.Sequence
	}
}

// foldFinished ends the task. The first end counts; no writer appends a second one,
// and a fold must not let one undo the first.
func (s *State) foldFinished(e event.Event, d event.TaskFinishedData) {
	if s.Done() {
		return
	}
	s.end, s.endID, s.Ended = &d, e.ID, e.Time
	s.holder, s.assigned, s.mail = "", nil, nil
}

func (s *State) foldChildCreated(e event.Event, d event.ChildCreatedData) {
	s.sign(e, d.TaskHead, d.Connection)
	if s.children[d.ChildID] == nil {
		s.children[d.ChildID] = &child{made: &d, attempt: d.Attempt, began: e.Sequence}
		s.childIDs = append(s.childIDs, d.ChildID)
	}
}

func (s *State) foldChildFinished(e event.Event, d event.ChildFinishedData) {
	if c := s.children[d.ChildID]; c != nil {
		c.made, c.ended = nil, e.Sequence
	}
}

func (s *State) foldCallStarted(e event.Event, d event.CallStartedData) {
	s.sign(e, d.TaskHead, d.Connection)
	if s.calls[d.CallID] == nil {
		s.calls[d.CallID] = &call{intent: &d}
		s.callIDs = append(s.callIDs, d.CallID)
	}
}

func (s *State) foldCallNotified(_ event.Event, d event.CallNotifiedData) {
	if c := s.calls[d.CallID]; c != nil {
		c.told++
	}
}

func (s *State) foldCallFinished(e event.Event, d event.CallFinishedData) {
	if c := s.calls[d.CallID]; c != nil {
		c.intent, c.ended = nil, e.Sequence
	}
}
