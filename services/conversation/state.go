// Package conversation is the pure reducer of the log of a session, or of a member of a team: it
// folds the log into a state, and returns the events that a command calls for.
//
// It has no clock, no randomness and no I/O: ids and times are arguments. The session and pipeline
// services decide with it, and workers learn from it the rest of a job, so that all have the same
// view after a crash.
//
// A step that is restarted after the end of its run begins a new run with the results of the first: an accepted message has
// exactly one terminal event.
//
// The budget of a run is in the log: run.started states it, usage.recorded and tool.called use it up, and the state tells a
// worker to stop or to ask. So it holds over any number of takeovers. Jobs that run in parallel may each finish their
// message beyond the limit.
//
// A stored state has no member for a field that is zero: it loads in a third of the time, and processes of versions with
// and without these members read each other's states.
package conversation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation/marks"
	"github.com/waggle-dev/waggle/services/conversation/retry"
	"github.com/waggle-dev/waggle/services/conversation/usage"
)

// Status is the state of a run.
type Status string

// The states of a run. The last three are terminal and never change.
const (
	Queued    Status = "queued"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Terminal reports whether the status is final.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// CallStatus is the state of a tool call.
type CallStatus string

// The states of a tool call. The last three are final.
const (
	CallIntended  CallStatus = "intended" // tool.called: it may not have been handed over
	CallStarted   CallStatus = "started"  // tool.started: it may have had its effect
	CallCompleted CallStatus = "completed"
	CallFailed    CallStatus = "failed"
	CallUnknown   CallStatus = "unknown"
)

// Final reports whether the call has an outcome.
func (s CallStatus) Final() bool { return s == CallCompleted || s == CallFailed || s == CallUnknown }

// State is the fold of the log of a session or of a member of a team. The zero value is a log without events. It keeps the
// newest runs only: see Keep.
type State struct {
	Seq         uint64
	Created     time.Time
	Updated     time.Time
	Dialect     string
	Principal   string
	OpenedFor   string // the principal for whom a service has opened it
	Preferences event.Preferences
	Closed      bool
	Deleted     bool                     // all else is discarded, and no event follows
	Agent       *event.MemberCreatedData // the owner of a member's log; nil = the log of a session
	Todos       []event.Todo             // of the agent
	Tainted     bool                     // it holds untrusted output, which later messages of the model may follow

	runs     map[string]*Run
	order    []*Run                     // as accepted
	refusals []event.MessageRefusedData // the newest ones
	works    map[string]*Work
	calls    map[string]*Call // by call id, over all runs
	inputs   map[string]*Input
	asked    map[string]*Input // the questions about tool calls, by call id
	must     map[string]bool   // the calls that people have to be asked about, by call id
	known    marks.Set         // the messages, and ids of events that a command may cause only once
	history  []Line            // the conversation before the export that this session was restored from
	lastExec string
	totals   usage.Totals
	timed    *Run   // the active run, if its budget limits its time
	clock    string // the clock that Updated was read from; empty = none
	keep     int    // see Keep
	thin     bool   // see Thin
	lost     lost
	planned  *Run   // the newest planned run, if it is forgotten: see Run.bare
	asking   string // the newest question of the planned runs that are forgotten
}

// Owner returns the principal that the session or the agent belongs to; empty = none is known.
func (s *State) Owner() string { return cmp.Or(s.Principal, s.OpenedFor) }

// Run is one answer to one message.
type Run struct {
	ID          string
	ExecutionID string
	MessageID   string
	Content     string
	Principal   string
	Sender      *event.Sender // nil: a user
	Attachments event.Attachments
	Spec        event.RunSpec
	Status      Status
	Started     time.Time // when it left the queue
	Over        time.Time // when it became terminal
	Answer      string
	Outcome     string    // of a completed pipeline run
	Pipeline    *Pipeline // nil in a chat run

	Budget event.Budget // limits of the run; zero: unlimited

	works     []*Work   // its jobs, as begun
	questions []*Input  // about its tool calls and its budget, as asked
	budgets   []*Input  // those about its budget
	failing   time.Time // when the first request to the model was made that failed since the last answer
	worked    time.Duration
	clocks    clocks
	weight    int // of a terminal run
}

// Attempt returns the newest claim of the run's newest job, 0 if none was claimed.
func (r *Run) Attempt() int {
	if len(r.works) == 0 {
		return 0
	}
	return r.works[len(r.works)-1].Attempt
}

// Work is a job, which a worker claims. The job of a chat run has the run's id.
type Work struct {
	ID          string
	RunID       string
	ExecutionID string
	Part        event.Part // zero in a chat run
	StartedBy   string     // id of the event that began it
	Started     time.Time
	Claimed     time.Time // when it was first claimed; zero = never
	Ended       bool      // it no longer needs a worker
	Attempt     int       // of the newest claim; 0 = never claimed
	Claim       string    // id of the newest job.started event: the fence
	Item        string    // the work item behind that claim
	Refused     int       // highest refused attempt
	Messages    []Message
	Open        []string // messages that have started and are neither completed nor discarded
	Failure     *event.JobFailedData
	SwarmTask   string // the task of an agent of the swarm that has it
	Try         int    // of the plan, task or aggregate: 1, 2, ...
	MaxTries    int
	Paused      bool // it is suspended: all remaining calls waited for people at that time

	Outage  retry.Outage // consecutive failed requests to the model
	Instead string       `json:",omitempty"` // the model that is asked in place of the run's, which has failed

	worker  string    // the instance behind the newest claim
	pause   string    // id of the newest job.suspended event
	rested  int       // the claim that ended with that event
	asked   time.Time // when the newest request to the model was made
	said    int       // bytes of the newest message so far
	begun   bool      // viewers have got its first event
	partial []byte    // text of the newest message, while it is open
	thought thought   // of the open message
	tally   usage.Tally
}

// Message is a whole message of the model.
type Message struct {
	ID        string
	Content   string
	ToolCalls []event.ToolCall
	Stop      string          `json:",omitempty"` // why it is not complete: event.StopLength and others; empty = it is
	Attempt   int             `json:",omitempty"` // of one that was stopped: its worker's
	Reasoning string          `json:",omitempty"` // kept for the model that wants it back with its calls
	PassBack  *event.PassBack `json:",omitempty"`
}

// Call is one tool call.
type Call struct {
	ID         string
	RunID      string
	Work       string // the job that made it
	Tool       string
	Arguments  json.RawMessage
	Idempotent bool
	Status     CallStatus
	Attempt    int    // of the newest event about it
	Result     string // text for the model, once final

	Files []event.File `json:",omitempty"` // that it has returned besides
}

// Unowned reports whether no person owns the log, as is true of the sessions of the built-in agent.
func (s *State) Unowned(command.Command) bool { return s.Principal == "" }

// Run returns the run with the id, or nil.
func (s *State) Run(id string) *Run { return s.runs[id] }

// Runs returns the runs that it keeps in the order in which their messages were accepted.
func (s *State) Runs() []*Run { return s.order }

// Work returns the job with the id, or nil.
func (s *State) Work(id string) *Work { return s.works[id] }

// Call returns the call with the id, or nil.
func (s *State) Call(id string) *Call { return s.calls[id] }

// Active returns the active run, or nil.
func (s *State) Active() *Run {
	for _, r := range s.order {
		if r.Status == Running {
			return r
		}
	}
	return nil
}

// Waiting returns the number of queued runs.
func (s *State) Waiting() int {
	n := 0
	for _, r := range s.order {
		if r.Status == Queued {
			n++
		}
	}
	return n
}

// Idle reports whether the log has neither an active run nor a waiting one.
func (s *State) Idle() bool { return s.Active() == nil && s.Waiting() == 0 }

// Apply folds the next event of the log into s. It skips unknown types and members; an error
// means that the log has an event that this program never appends.
func (s *State) Apply(e event.Event) error {
	if s.Deleted {
		return fmt.Errorf("session log %s, seq %d: %s follows the deletion", e.Subject, e.Sequence, e.Type)
	}
	s.Seq = e.Sequence
	clock := s.clockOf(e)
	s.work(e.Time, clock)
	s.Updated, s.clock = e.Time, clock
	fold, ok := folds[e.Type]
	if !ok {
		return nil
	}
	if err := fold(s, e); err != nil {
		return fmt.Errorf("session log %s, seq %d: %w", e.Subject, e.Sequence, err)
	}
	return nil
}

func (s *State) init() {
	if s.runs == nil {
		s.runs = map[string]*Run{}
		s.works = map[string]*Work{}
		s.calls = map[string]*Call{}
		s.inputs = map[string]*Input{}
		s.asked = map[string]*Input{}
		s.must = map[string]bool{}
	}
}

// messageMark is the mark of a message that was received.
func messageMark(messageID string) string { return "message " + messageID }

// refusalMark is the mark of a message that was refused.
func refusalMark(messageID string) string { return "refusal " + messageID }

// heard reports whether the message was received or refused.
func (s *State) heard(messageID string) bool {
	return s.known.Has(messageMark(messageID)) || s.known.Has(refusalMark(messageID))
}
