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

	Worker  string    // the instance behind the newest claim
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

func (w *Job) claimed(e event.Event, d event.JobStartedData) {
	if w.Claimed.IsZero() || w.Paused { // the time in which it waited for people does not count
		w.Claimed = e.Time
	}
	w.Attempt, w.Claim, w.Item, w.SwarmTask, w.Worker, w.Paused = d.Attempt, e.ID, d.CommandID, d.SwarmTask, d.Worker, false
}

func (w *Job) refused(_ event.Event, d event.AttemptRefusedData) {
	w.Refused = max(w.Refused, d.Attempt)
}

// suspended notes that the job waits for people. A claim that is not the newest cannot suspend it.
func (w *Job) suspended(e event.Event, d event.JobSuspendedData) {
	if d.Attempt == w.Attempt {
		w.Paused, w.Pause, w.Rested = true, e.ID, w.Attempt
	}
}

func (w *Job) gaveUp(e event.Event, d event.JobFailedData) {
	if w.Ended || w.Failure != nil {
		return
	}
	w.Failure = &d
	if retry.Transient(d.Code) {
		w.run.requestFailed(w, e.Time)
	}
}

func (w *Job) requestFailed(e event.Event, d event.RequestFailedData) {
	w.run.requestFailed(w, e.Time)
	w.Outage.Since = earliest(w.Outage.Since, earliest(w.Asked, e.Time))
	w.Outage.Tries, w.Outage.Next = d.Try, e.Time.Add(time.Duration(d.RetryAfterMS)*time.Millisecond)
	if w.Outage.Code = d.Code; d.NextModel != "" {
		w.Instead = d.NextModel
	}
}

func (w *Job) messageStarted(e event.Event, d event.MessageStartedData) {
	w.Open = append(w.Open, d.MessageID)
	w.Partial, w.Length, w.Begun = nil, 0, !d.Waits
	w.Asked = e.Time
}

func (w *Job) delta(_ event.Event, d event.MessageDeltaData) {
	w.Length += len(d.Text)
	w.Begun = w.Begun || d.Begins
	w.Partial = append(w.Partial, d.Text...)
}

// thought is what a model wants back with a message that is not complete yet.
type thought struct {
	Message   string          `json:",omitempty"`
	Reasoning string          `json:",omitempty"`
	PassBack  *event.PassBack `json:",omitempty"`
}

// reasoned keeps the reasoning for the message that follows from it, if the model wants it back.
func (w *Job) reasoned(_ event.Event, d event.ReasoningCompletedData) {
	if d.PassBack != nil {
		w.Thought = thought{Message: d.MessageID, Reasoning: d.Content, PassBack: d.PassBack}
	}
}

func (w *Job) messageCompleted(_ event.Event, d event.MessageCompletedData) {
	m := Message{ID: d.MessageID, Content: d.Content, ToolCalls: d.ToolCalls}
	if !d.Complete() {
		m.Stop = d.StopReason
	}
	if m.stopped() {
		m.Attempt = d.Attempt
	} else {
		w.Outage, w.run.Failing = retry.Outage{}, time.Time{}
		w.Tally.Calls++
	}
	if w.Thought.Message == d.MessageID {
		m.Reasoning, m.PassBack = w.Thought.Reasoning, w.Thought.PassBack
	}
	w.closeMessage(d.MessageID)
	w.Messages = append(w.Messages, m)
}

// answered records which calls of a message a person has to allow, and counts the message.
func answered(s *State, _ event.Event, d event.MessageCompletedData) error {
	s.calls.ask(&s.Profile, s.Run(d.RunID), d.ToolCalls)
	if d.StopReason != event.StopStopped {
		s.totals.Calls++
	}
	return nil
}

func (w *Job) discarded(_ event.Event, d event.MessageDiscardedData) { w.closeMessage(d.MessageID) }

func (w *Job) used(_ event.Event, d event.UsageRecordedData) { w.Tally.Record(d) }

func (w *Job) toolCalled(_ event.Event, d event.ToolCalledData) { w.Tally.Use(d.Tool) }

func (w *Job) closeMessage(id string) {
	w.Open = slices.DeleteFunc(w.Open, func(m string) bool { return m == id })
	w.Partial, w.Thought = nil, thought{}
}

// Silent reports whether viewers have been shown nothing of the message that is open.
func (w *Job) Silent() bool { return w == nil || !w.Begun }

// final returns the job's last word: a message without tool calls.
func (w *Job) final() (Message, bool) {
	if len(w.Messages) == 0 || len(w.Open) > 0 {
		return Message{}, false
	}
	last := w.Messages[len(w.Messages)-1]
	return last, len(last.ToolCalls) == 0 && !last.stopped()
}

// failed says that a job ended in an error that its worker does not report.
func (w *Job) failed(entry fault.Entry, now time.Time, limit time.Duration) decision.Fact {
	return decision.Fact{ID: w.ID + ".failed", Data: event.JobFailedData{
		RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Code: string(entry.Code), Message: entry.Message,
		Retryable: entry.Retryable, TimeoutSeconds: int(limit / time.Second), ElapsedMS: since(now, w.Started),
		Try: w.Try, MaxTries: w.MaxTries, Part: w.Part,
	}}
}

// Stopped closes the newest open message with the text so far.
func (w *Job) Stopped(message string) event.MessageCompletedData {
	return event.MessageCompletedData{
		MessageID: message, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Role: event.RoleAssistant,
		Content: string(w.Partial), StopReason: event.StopStopped, Silent: w.Silent(), Part: w.Part,
	}
}

// Said reports whether people have read a part of the message that is open.
func (w *Job) Said() bool { return w != nil && len(w.Open) > 0 && len(w.Partial) > 0 }

// discards closes the messages that a job leaves half said.
func discards(w *Job) []decision.Fact {
	list := make([]decision.Fact, 0, len(w.Open))
	for _, m := range w.Open {
		list = append(list, decision.Fact{ID: m + ".discarded", Data: event.MessageDiscardedData{
			MessageID: m, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Reason: "the work was stopped",
			Silent: w.Silent(), Part: w.Part,
		}})
	}
	return list
}

// stops closes the messages of a job that ends for good. The text that people have read stays.
func stops(w *Job) []decision.Fact {
	list := discards(w)
	if n := len(list) - 1; n >= 0 && len(w.Partial) > 0 {
		said := w.Stopped(w.Open[n])
		list[n] = decision.Fact{ID: said.MessageID + ".stopped", Data: said}
	}
	return list
}

// Spent returns how many claims of the job count against the limit: those since it was suspended
// last. Waiting for people costs no attempts.
func (w *Job) Spent() int { return w.Attempt - w.Rested }

// Resumption is the id of the work item that has the job taken up again after its
// newest pause.
func (w *Job) Resumption() string { return w.Pause + ".resumed" }
