package conversation

import (
	"slices"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation/retry"
	"github.com/waggle-dev/waggle/services/conversation/usage"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// jobFolds are the effects of events about jobs.
var jobFolds = map[event.Type]effect{
	event.JobStarted:     with(onJob((*Job).claimed, func(d event.JobStartedData) at { return at{d.RunID, d.Part} })),
	event.AttemptRefused: with(onJob((*Job).refused, func(d event.AttemptRefusedData) at { return at{d.RunID, d.Part} })),
	event.JobSuspended:   with(onJob((*Job).suspended, func(d event.JobSuspendedData) at { return at{d.RunID, d.Part} })),
	event.JobFailed:      with(onJob((*Job).gaveUp, func(d event.JobFailedData) at { return at{d.RunID, d.Part} })),
	event.RequestFailed:  with(onJob((*Job).requestFailed, func(d event.RequestFailedData) at { return at{d.RunID, d.Part} })),

	event.MessageStarted: with(
		onJob((*Job).messageStarted, func(d event.MessageStartedData) at { return at{d.RunID, d.Part} }),
		onTotals(func(t *usage.Totals, _ event.MessageStartedData) { t.Begun++ }),
	),
	event.MessageDelta:       with(onJob((*Job).delta, func(d event.MessageDeltaData) at { return at{d.RunID, d.Part} })),
	event.ReasoningCompleted: with(onJob((*Job).reasoned, func(d event.ReasoningCompletedData) at { return at{d.RunID, d.Part} })),
	event.MessageCompleted: with(
		onJob((*Job).messageCompleted, func(d event.MessageCompletedData) at { return at{d.RunID, d.Part} }),
		answered,
	),
	event.MessageDiscarded: with(onJob((*Job).discarded, func(d event.MessageDiscardedData) at { return at{d.RunID, d.Part} })),
	event.UsageRecorded: with(
		onJob((*Job).used, func(d event.UsageRecordedData) at { return at{d.RunID, d.Part} }),
		onTotals(func(t *usage.Totals, d event.UsageRecordedData) { t.Record(d) }),
	),
}

// Job is what a worker claims. The job of a chat has the id of its run.
type Job struct {
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
	Item        string    // work item of that claim
	Refused     int       // highest refused attempt
	Messages    []Message
	Open        []string // messages that have started and are neither completed nor discarded
	Failure     *event.JobFailedData
	SwarmTask   string // the task of an agent of the swarm that has it
	Try         int    // of the plan, step or aggregate: 1, 2, ...
	MaxTries    int
	Paused      bool // it is suspended: all remaining calls waited for people at that time

	Outage  retry.Outage // consecutive failed requests to the model
	Instead string       `json:",omitempty"` // the model that is asked in place of the run's, which has failed

	Worker  string    // instance with the newest claim
	Pause   string    // id of the newest job.suspended event
	Rested  int       // the claim that ended with that event
	Asked   time.Time // when the newest request to the model was made
	Length  int       // bytes of the newest message so far
	Begun   bool      // viewers have got its first event
	Partial []byte    // text of the newest message, while it is open
	Thought thought   // of the open message
	Tally   usage.Tally

	run *Run
}

func (j *Job) claimed(e event.Event, d event.JobStartedData) {
	if j.Claimed.IsZero() || j.Paused { // the time in which it waited for people does not count
		j.Claimed = e.Time
	}
	j.Attempt, j.Claim, j.Item, j.SwarmTask, j.Worker, j.Paused = d.Attempt, e.ID, d.CommandID, d.SwarmTask, d.Worker, false
}

func (j *Job) refused(_ event.Event, d event.AttemptRefusedData) {
	j.Refused = max(j.Refused, d.Attempt)
}

// suspended notes that the job waits for people. A claim that is not the newest cannot suspend it.
func (j *Job) suspended(e event.Event, d event.JobSuspendedData) {
	if d.Attempt == j.Attempt {
		j.Paused, j.Pause, j.Rested = true, e.ID, j.Attempt
	}
}

func (j *Job) gaveUp(e event.Event, d event.JobFailedData) {
	if j.Ended || j.Failure != nil {
		return
	}
	j.Failure = &d
	if retry.Transient(d.Code) {
		j.run.requestFailed(j, e.Time)
	}
}

func (j *Job) requestFailed(e event.Event, d event.RequestFailedData) {
	j.run.requestFailed(j, e.Time)
	j.Outage.Since = earliest(j.Outage.Since, earliest(j.Asked, e.Time))
	j.Outage.Tries, j.Outage.Next = d.Try, e.Time.Add(time.Duration(d.RetryAfterMS)*time.Millisecond)
	if j.Outage.Code = d.Code; d.NextModel != "" {
		j.Instead = d.NextModel
	}
}

func (j *Job) messageStarted(e event.Event, d event.MessageStartedData) {
	j.Open = append(j.Open, d.MessageID)
	j.Partial, j.Length, j.Begun = nil, 0, !d.Waits
	j.Asked = e.Time
}

func (j *Job) delta(_ event.Event, d event.MessageDeltaData) {
	j.Length += len(d.Text)
	j.Begun = j.Begun || d.Begins
	j.Partial = append(j.Partial, d.Text...)
}

// thought is what a model wants back with a message that is not complete yet.
type thought struct {
	Message   string          `json:",omitempty"`
	Reasoning string          `json:",omitempty"`
	PassBack  *event.PassBack `json:",omitempty"`
}

// reasoned keeps the reasoning for the message that follows from it, if the model wants it back.
func (j *Job) reasoned(_ event.Event, d event.ReasoningCompletedData) {
	if d.PassBack != nil {
		j.Thought = thought{Message: d.MessageID, Reasoning: d.Content, PassBack: d.PassBack}
	}
}

func (j *Job) messageCompleted(_ event.Event, d event.MessageCompletedData) {
	m := Message{ID: d.MessageID, Content: d.Content, ToolCalls: d.ToolCalls}
	if !d.Complete() {
		m.Stop = d.StopReason
	}
	if m.stopped() {
		m.Attempt = d.Attempt
	} else {
		j.Outage, j.run.Failing = retry.Outage{}, time.Time{}
		j.Tally.Calls++
	}
	if j.Thought.Message == d.MessageID {
		m.Reasoning, m.PassBack = j.Thought.Reasoning, j.Thought.PassBack
	}
	j.closeMessage(d.MessageID)
	j.Messages = append(j.Messages, m)
}

// answered records which calls of a message a person has to allow, and counts the message.
func answered(s *State, _ event.Event, d event.MessageCompletedData) error {
	s.calls.ask(&s.Profile, s.Run(d.RunID), d.ToolCalls)
	if d.StopReason != event.StopStopped {
		s.totals.Calls++
	}
	return nil
}

func (j *Job) discarded(_ event.Event, d event.MessageDiscardedData) { j.closeMessage(d.MessageID) }

func (j *Job) used(_ event.Event, d event.UsageRecordedData) { j.Tally.Record(d) }

func (j *Job) toolCalled(_ event.Event, d event.ToolCalledData) { j.Tally.Use(d.Tool) }

func (j *Job) closeMessage(id string) {
	j.Open = slices.DeleteFunc(j.Open, func(m string) bool { return m == id })
	j.Partial, j.Thought = nil, thought{}
}

// Silent reports whether viewers have been shown nothing of the message that is open.
func (j *Job) Silent() bool { return j == nil || !j.Begun }

// final returns the answer of the job: its last message, if that has no tool calls.
func (j *Job) final() (Message, bool) {
	if len(j.Messages) == 0 || len(j.Open) > 0 {
		return Message{}, false
	}
	last := j.Messages[len(j.Messages)-1]
	return last, len(last.ToolCalls) == 0 && !last.stopped()
}

// failed is the end of a job in an error that its worker does not report.
func (j *Job) failed(entry fault.Entry, now time.Time, limit time.Duration) decision.Fact {
	return decision.Fact{ID: j.ID + ".failed", Data: event.JobFailedData{
		RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: j.Attempt, Code: string(entry.Code), Message: entry.Message,
		Retryable: entry.Retryable, TimeoutSeconds: int(limit / time.Second), ElapsedMS: since(now, j.Started),
		Try: j.Try, MaxTries: j.MaxTries, Part: j.Part,
	}}
}

// Stopped closes the newest open message with the text so far.
func (j *Job) Stopped(message string) event.MessageCompletedData {
	return event.MessageCompletedData{
		MessageID: message, RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: j.Attempt, Role: event.RoleAssistant,
		Content: string(j.Partial), StopReason: event.StopStopped, Silent: j.Silent(), Part: j.Part,
	}
}

// Said reports whether people have read a part of the message that is open.
func (j *Job) Said() bool { return j != nil && len(j.Open) > 0 && len(j.Partial) > 0 }

// discards closes the unfinished messages of a job.
func discards(j *Job) []decision.Fact {
	list := make([]decision.Fact, 0, len(j.Open))
	for _, m := range j.Open {
		list = append(list, decision.Fact{ID: m + ".discarded", Data: event.MessageDiscardedData{
			MessageID: m, RunID: j.RunID, ExecutionID: j.ExecutionID, Attempt: j.Attempt, Reason: "the work was stopped",
			Silent: j.Silent(), Part: j.Part,
		}})
	}
	return list
}

// stops closes the messages of a job that ends permanently. The text that people have read stays.
func stops(j *Job) []decision.Fact {
	list := discards(j)
	if n := len(list) - 1; n >= 0 && len(j.Partial) > 0 {
		said := j.Stopped(j.Open[n])
		list[n] = decision.Fact{ID: said.MessageID + ".stopped", Data: said}
	}
	return list
}

// Spent returns how many claims of the job count against the limit: those since it was suspended
// last. Waiting for people costs no attempts.
func (j *Job) Spent() int { return j.Attempt - j.Rested }

// Resumption is the id of the work item that resumes the job after its newest suspension.
func (j *Job) Resumption() string { return j.Pause + ".resumed" }

// open reports whether the job is to be done.
func (j *Job) open() bool { return !j.Ended && j.Failure == nil }
