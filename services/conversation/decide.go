package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// MaxWaiting is how many messages may wait behind the run that is on: enough for
// a person who types ahead, small enough that a runaway client is told soon.
const MaxWaiting = 16

// execLayout is the time part of an execution id, down to microseconds.
const execLayout = "20060102_150405.000000"

// Fact is an event to be: its data and an id that is the same however often the
// same command is handled.
type Fact struct {
	ID   string
	Data event.Data
}

// Decide returns the events that the command still calls for in this state, none
// if it has had its whole effect. now is the time of handling.
//
// After the returned events have been applied, Decide returns none: a command
// that is handled twice changes nothing the second time.
func (s *State) Decide(c command.Command, now time.Time, ttl time.Duration) ([]Fact, error) {
	switch c.Verb {
	case command.Open:
		return s.open(c)
	case command.Message:
		return s.receive(c, now)
	case command.Cancel:
		return s.cancel(c, now)
	case command.Close:
		return s.close(c)
	case command.TurnEnded:
		return s.next(c.ID, now), nil
	case command.WorkDead:
		return s.workDead(c, now)
	case command.Expire:
		return s.expire(c, now, ttl), nil
	}
	return nil, fault.Newf(fault.UnknownType, "session has no command %q", c.Verb)
}

// RunID returns the id of the run that answers the message with the given id.
func RunID(messageID string) string {
	sum := sha256.Sum256([]byte(messageID))
	return "run_" + hex.EncodeToString(sum[:10])
}

func (s *State) open(c command.Command) ([]Fact, error) {
	if !s.Created.IsZero() {
		return nil, nil
	}
	var d command.OpenSession
	if err := c.Decode(&d); err != nil {
		return nil, err
	}
	return []Fact{{c.ID + ".created", event.SessionCreatedData{Dialect: d.Dialect, Principal: c.Principal}}}, nil
}

func (s *State) receive(c command.Command, now time.Time) ([]Fact, error) {
	if _, known := s.messages[c.ID]; known {
		return s.next(c.ID, now), nil
	}
	var d command.UserMessage
	if err := c.Decode(&d); err != nil {
		return nil, err
	}
	if s.Created.IsZero() {
		return nil, fault.New(fault.SessionNotFound)
	}
	if why := s.refusal(); why != nil {
		return []Fact{{c.ID + ".refused", event.MessageRefusedData{MessageID: c.ID, Code: string(why.Code), Message: why.Message}}}, nil //nolint:nilerr // a refusal is an outcome, not a failure
	}
	queued := s.Waiting()
	if s.Active() != nil {
		queued++
	}
	got := event.MessageReceivedData{
		MessageID: c.ID, RunID: RunID(c.ID), Content: d.Content, Principal: c.Principal, Queued: queued,
	}
	facts := []Fact{{c.ID + ".received", got}}
	if queued == 0 {
		facts = append(facts, s.start(c.ID, &Run{ID: got.RunID, MessageID: got.MessageID, Content: got.Content}, now))
	}
	return facts, nil
}

func (s *State) refusal() *fault.Fault {
	switch {
	case s.Closed:
		return fault.New(fault.SessionClosed)
	case s.Waiting() >= MaxWaiting:
		return fault.New(fault.QueueFull)
	}
	return nil
}

// next starts the oldest waiting run if none is on.
func (s *State) next(by string, now time.Time) []Fact {
	if s.Active() != nil {
		return nil
	}
	for _, r := range s.order {
		if r.Status == Queued {
			return []Fact{s.start(by, r, now)}
		}
	}
	return nil
}

func (s *State) start(by string, r *Run, now time.Time) Fact {
	return Fact{by + ".started." + r.ID, event.RunStartedData{
		RunID: r.ID, ExecutionID: s.executionID(now), MessageID: r.MessageID, Content: r.Content,
	}}
}

// executionID is the time in the form exec_YYYYMMDD_HHMMSS_ffffff, moved on by
// microseconds until it is later than the session's last one: the form sorts by time.
func (s *State) executionID(now time.Time) string {
	for at := now.UTC(); ; at = at.Add(time.Microsecond) {
		id := []byte("exec_" + at.Format(execLayout))
		id[len(id)-7] = '_'
		if string(id) > s.lastExec {
			return string(id)
		}
		if last, err := time.Parse(execLayout, dotted(s.lastExec)); err == nil && last.After(at) {
			at = last
		}
	}
}

func dotted(exec string) string {
	b := []byte(exec[len("exec_"):])
	b[len(b)-7] = '.'
	return string(b)
}

func (s *State) cancel(c command.Command, now time.Time) ([]Fact, error) {
	var d command.CancelRun
	if err := c.Decode(&d); err != nil {
		return nil, err
	}
	r := s.Active()
	if d.RunID != "" {
		r = s.Run(d.RunID)
	}
	if s.cancels[c.ID] || r == nil || r.Status.Terminal() {
		return s.next(c.ID, now), nil
	}
	reason := d.Reason
	if reason == "" {
		reason = "user_request"
	}
	return []Fact{{c.ID + ".cancelled", event.RunCancelledData{
		RunID: r.ID, ExecutionID: r.ExecutionID, Reason: reason, By: c.Principal, CommandID: c.ID,
	}}}, nil
}

func (s *State) close(c command.Command) ([]Fact, error) {
	if s.Created.IsZero() || s.Closed {
		return nil, nil
	}
	var d command.CloseSession
	if err := c.Decode(&d); err != nil {
		return nil, err
	}
	reason := d.Reason
	if reason == "" {
		reason = "user_request"
	}
	return s.ending(c, reason), nil
}

// ending cancels every open run, then closes the session.
func (s *State) ending(c command.Command, reason string) []Fact {
	var facts []Fact
	for _, r := range s.order {
		if !r.Status.Terminal() {
			facts = append(facts, Fact{c.ID + ".cancelled." + r.ID, event.RunCancelledData{
				RunID: r.ID, ExecutionID: r.ExecutionID, Reason: reason, By: c.Principal, CommandID: c.ID,
			}})
		}
	}
	return append(facts, Fact{c.ID + ".closed", event.SessionClosedData{Reason: reason}})
}

// workDead fails a run whose work item the bus gave up delivering.
func (s *State) workDead(c command.Command, now time.Time) ([]Fact, error) {
	var d command.DeadWork
	if err := c.Decode(&d); err != nil {
		return nil, err
	}
	r := s.Run(d.RunID)
	if r == nil || r.Status != Running {
		return s.next(c.ID, now), nil
	}
	entry := fault.Lookup(fault.AttemptsOver)
	return []Fact{{c.ID + ".failed", event.RunFailedData{
		RunID: r.ID, ExecutionID: r.ExecutionID, Attempt: r.Attempt,
		Code: string(entry.Code), Message: entry.Message, Retryable: entry.Retryable,
	}}}, nil
}

// expire closes a session in which nothing has happened for ttl and no run is on.
func (s *State) expire(c command.Command, now time.Time, ttl time.Duration) []Fact {
	if s.Created.IsZero() || s.Closed || s.Active() != nil || now.Before(s.Updated.Add(ttl)) {
		return nil
	}
	return s.ending(c, "timeout")
}
