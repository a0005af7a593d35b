package index

import (
	"cmp"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/api"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// format is the version of a summary. A summary of another version is made anew.
const format = 5

// questionRunes is enough to recognise a session by.
const questionRunes = 120

// idle is the stage of a restored session without an active run.
const idle = "idle"

// Summary is what lists show of a session, as of one event of its log. The summaries of members and tasks hold what their
// questions repeat, and the order of the logs.
type Summary struct {
	Format    int       `json:"format"`
	Known     bool      `json:"known,omitempty"` // the owner is known: the first event had not expired
	Owner     string    `json:"owner,omitempty"` // the principal that opened the session
	Dialect   string    `json:"dialect,omitempty"`
	Question  string    `json:"question,omitempty"` // beginning of the first message
	CreatedAt time.Time `json:"created_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at"`
	Closed    bool      `json:"closed,omitempty"`
	Runs      int       `json:"runs,omitempty"`
	Open      int       `json:"open,omitempty"`   // runs that are not over
	Asks      int       `json:"asks,omitempty"`   // questions of a run that wait for people
	Asking    string    `json:"asking,omitempty"` // that run
	LastSeq   uint64    `json:"last_seq"`
	LastEvent string    `json:"last_event"`
	Position  uint64    `json:"position,omitempty"` // of the last event in the shard
	Inputs    int       `json:"inputs,omitempty"`   // questions of the log that are open in the index
	Team      string    `json:"team,omitempty"`     // of a member: the outermost team
	Route     string    `json:"route,omitempty"`    // of a member: its path from that team
	Job       bool      `json:"job,omitempty"`      // of a task: it is a job of another log, which asks its questions, too
	Ended     string    `json:"ended,omitempty"`    // how the run ended that ended last
	Calls     *calls    `json:"calls,omitempty"`    // of the run under way; nil: none whose effect matters
	Spent     spent     `json:"spent,omitzero"`     // by the runs that are over
	Model     string    `json:"model,omitempty"`    // that answered last
	Agent     string    `json:"agent,omitempty"`    // of the swarm that had the last job; empty: a worker had it
	Gone      bool      `json:"gone,omitempty"`     // a marker in place of a summary
}

// Status returns the status of the session.
func (s *Summary) Status() string {
	if s.Closed {
		return api.SessionClosed
	}
	return api.SessionOpen
}

// State returns what the session does, or how its last run ended.
func (s *Summary) State() string {
	switch {
	case s.Asks > 0:
		return api.SessionWaiting
	case s.Open > 0:
		return api.SessionRunning
	case s.Ended != "":
		return s.Ended
	case s.Format < endsFormat: // a log without news since then: its last event tells
		return cmp.Or(endOf(event.Type(s.LastEvent), ""), api.SessionIdle)
	}
	return api.SessionIdle
}

// kinds are the types of events that change more of a summary or of questions than the last event, by the kind of the
// log. An index follows their announcements.
var kinds = map[id.Kind][]event.Type{
	id.KindSession: {
		event.SessionCreated, event.SessionRestored, event.SessionClosed, event.SessionDeleted, event.MessageReceived,
		event.RunStarted, event.RunCompleted, event.RunFailed, event.RunCancelled, event.PlanCancelled,
		event.InputRequested, event.InputAnswered, event.InputExpired,
	},
	id.KindMember: {
		event.MemberCreated, event.MemberClosed, event.RunCompleted, event.RunFailed, event.RunCancelled,
		event.InputRequested, event.InputAnswered, event.InputExpired,
	},
	id.KindTask: {
		event.TaskCreated, event.TaskQueued, event.TaskAssigned, event.TaskReported, event.TaskReleased, event.TaskFinished, event.TaskDeleted,
		event.TaskAsked, event.TaskMessaged, event.TaskAskExpired,
	},
}

// add folds the next event of the log. An event that cannot be decoded changes nothing else.
func (s *Summary) add(e *eventlog.Entry) {
	s.UpdatedAt, s.LastSeq, s.LastEvent, s.Position = e.Time, e.Sequence, string(e.Type), e.Stream
	if e.Sequence == 1 {
		s.CreatedAt = e.Time
	}
	switch e.Type {
	case event.SessionCreated, event.SessionRestored:
		s.begin(e)
	case event.MemberCreated, event.TaskCreated:
		s.introduce(e)
	case event.SessionClosed:
		s.Closed, s.Open, s.Asks, s.Asking = true, 0, 0, ""
	case event.MessageReceived:
		if d, err := eventdata.As[event.MessageReceivedData](e.Event); err == nil {
			s.accept(d.Content)
		}
	case event.RunStarted:
		if d, err := eventdata.As[event.RunStartedData](e.Event); err == nil && d.Repairs != "" {
			s.accept("")
		}
	case event.RunCompleted, event.RunFailed, event.RunCancelled:
		s.over(e)
	case event.JobStarted, event.MessageStarted:
		s.answers(e)
	case event.ToolCalled, event.ToolStarted, event.ToolCompleted, event.ToolFailed, event.ToolUnknown:
		s.Calls = s.Calls.with(e)
	case event.InputRequested, event.InputAnswered, event.InputExpired:
		s.asks(e)
	}
}

// asks counts the questions of a run that wait for people.
func (s *Summary) asks(e *eventlog.Entry) {
	if e.Type != event.InputRequested {
		s.Asks = max(s.Asks-1, 0)
		return
	}
	if d, err := eventdata.As[event.InputRequestedData](e.Event); err == nil {
		s.Asks, s.Asking = s.Asks+1, d.RunID
	}
}

// begin notes the owner, which does not change: the first event says it.
func (s *Summary) begin(e *eventlog.Entry) {
	if d, err := eventdata.As[event.SessionCreatedData](e.Event); err == nil && e.Type == event.SessionCreated {
		s.Dialect, s.Owner, s.Known = d.Dialect, cmp.Or(d.Principal, d.Owner), e.Sequence == 1
	}
	d, err := eventdata.As[event.SessionRestoredData](e.Event)
	if err != nil || e.Type != event.SessionRestored {
		return
	}
	if e.Sequence == 1 {
		s.Dialect, s.Owner, s.Known = d.Dialect, d.Principal, true
	}
	if d.Stage != "" && d.Stage != idle {
		s.Open++
	}
}

// introduce notes what the questions of a member or a task repeat.
func (s *Summary) introduce(e *eventlog.Entry) {
	if e.Type == event.MemberCreated {
		if d, err := eventdata.As[event.MemberCreatedData](e.Event); err == nil {
			s.Owner, s.Known, s.Team, s.Route, s.Question = d.Principal, e.Sequence == 1, d.Root, d.Route, d.TeamName
		}
		return
	}
	if d, err := eventdata.As[event.TaskCreatedData](e.Event); err == nil {
		s.Owner, s.Known, s.Question, s.Job = d.Principal, e.Sequence == 1, d.TaskType, d.IsJob()
	}
}

// accept counts a run, and keeps the beginning of the first message.
func (s *Summary) accept(text string) {
	s.Runs, s.Open = s.Runs+1, s.Open+1
	if s.Question == "" {
		words := []rune(strings.Join(strings.Fields(text), " "))
		s.Question = string(words[:min(len(words), questionRunes)])
	}
}

// over counts the end of a run, whose questions are withdrawn.
func (s *Summary) over(e *eventlog.Entry) {
	s.Open = max(s.Open-1, 0)
	var d struct {
		RunID      string       `json:"run_id"`
		Outcome    string       `json:"outcome"`
		DurationMS int64        `json:"duration_ms"`
		Usage      *event.Usage `json:"usage"`
	}
	if err := eventdata.Into(e.Event, &d); err != nil {
		return
	}
	s.Spent.add(d.DurationMS, d.Usage)
	if d.RunID == s.Asking || s.Open == 0 {
		s.Asks, s.Asking = 0, ""
	}
	s.Ended = endOf(e.Type, d.Outcome)
	if s.Calls == nil || s.Calls.Run != d.RunID {
		return
	}
	if s.Calls.left() {
		s.Ended = api.SessionUnknown
	}
	s.Calls = nil
}
