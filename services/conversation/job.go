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
	event.JobStarted:     with(onJob(func(d event.JobStartedData) at { return at{d.RunID, d.Part} }, (*Work).claimed)),
	event.AttemptRefused: with(onJob(func(d event.AttemptRefusedData) at { return at{d.RunID, d.Part} }, (*Work).refused)),
	event.JobSuspended:   with(onJob(func(d event.JobSuspendedData) at { return at{d.RunID, d.Part} }, (*Work).suspended)),
	event.JobFailed:      with(onJob(func(d event.JobFailedData) at { return at{d.RunID, d.Part} }, (*Work).gaveUp)),
	event.RequestFailed:  with(onJob(func(d event.RequestFailedData) at { return at{d.RunID, d.Part} }, (*Work).requestFailed)),

	event.MessageStarted:     with(onJob(func(d event.MessageStartedData) at { return at{d.RunID, d.Part} }, (*Work).messageStarted), onTotals(func(t *usage.Totals, _ event.MessageStartedData) { t.Begun++ })),
	event.MessageDelta:       with(onJob(func(d event.MessageDeltaData) at { return at{d.RunID, d.Part} }, (*Work).delta)),
	event.ReasoningCompleted: with(onJob(func(d event.ReasoningCompletedData) at { return at{d.RunID, d.Part} }, (*Work).reasoned)),
	event.MessageCompleted:   with(onJob(func(d event.MessageCompletedData) at { return at{d.RunID, d.Part} }, (*Work).messageCompleted), answered),
	event.MessageDiscarded:   with(onJob(func(d event.MessageDiscardedData) at { return at{d.RunID, d.Part} }, (*Work).discarded)),
	event.UsageRecorded:      with(onJob(func(d event.UsageRecordedData) at { return at{d.RunID, d.Part} }, (*Work).used), onTotals(func(t *usage.Totals, d event.UsageRecordedData) { t.Record(d) })),
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

	run     *Run      // nil in a value that was stored
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

func (w *Work) claimed(e event.Event, d event.JobStartedData) {
	if w.Claimed.IsZero() || w.Paused { // the time in which it waited for people does not count
		w.Claimed = e.Time
	}
	w.Attempt, w.Claim, w.Item, w.SwarmTask, w.worker, w.Paused = d.Attempt, e.ID, d.CommandID, d.SwarmTask, d.Worker, false
}

func (w *Work) refused(_ event.Event, d event.AttemptRefusedData) {
	w.Refused = max(w.Refused, d.Attempt)
}

// suspended notes that the job waits for people. A claim that is not the newest cannot suspend it.
func (w *Work) suspended(e event.Event, d event.JobSuspendedData) {
	if d.Attempt == w.Attempt {
		w.Paused, w.pause, w.rested = true, e.ID, w.Attempt
	}
}

func (w *Work) gaveUp(e event.Event, d event.JobFailedData) {
	if w.Ended || w.Failure != nil {
		return
	}
	w.Failure = &d
	if retry.Transient(d.Code) {
		w.run.requestFailed(w, e.Time)
	}
}

func (w *Work) requestFailed(e event.Event, d event.RequestFailedData) {
	w.run.requestFailed(w, e.Time)
	w.Outage.Since = earliest(w.Outage.Since, earliest(w.asked, e.Time))
	w.Outage.Tries, w.Outage.Next = d.Try, e.Time.Add(time.Duration(d.RetryAfterMS)*time.Millisecond)
	if w.Outage.Code = d.Code; d.NextModel != "" {
		w.Instead = d.NextModel
	}
}

func (w *Work) messageStarted(e event.Event, d event.MessageStartedData) {
	w.Open = append(w.Open, d.MessageID)
	w.partial, w.said, w.begun = nil, 0, !d.Waits
	w.asked = e.Time
}

func (w *Work) delta(_ event.Event, d event.MessageDeltaData) {
	w.said += len(d.Text)
	w.begun = w.begun || d.Begins
	w.partial = append(w.partial, d.Text...)
}

// thought is what a model wants back with a message that is not complete yet.
type thought struct {
	Message   string          `json:",omitempty"`
	Reasoning string          `json:",omitempty"`
	PassBack  *event.PassBack `json:",omitempty"`
}

// reasoned keeps the reasoning for the message that follows from it, if the model wants it back.
func (w *Work) reasoned(_ event.Event, d event.ReasoningCompletedData) {
	if d.PassBack != nil {
		w.thought = thought{Message: d.MessageID, Reasoning: d.Content, PassBack: d.PassBack}
	}
}

func (w *Work) messageCompleted(_ event.Event, d event.MessageCompletedData) {
	m := Message{ID: d.MessageID, Content: d.Content, ToolCalls: d.ToolCalls}
	if !d.Complete() {
		m.Stop = d.StopReason
	}
	if m.stopped() {
		m.Attempt = d.Attempt
	} else {
		w.Outage, w.run.failing = retry.Outage{}, time.Time{}
		w.tally.Calls++
	}
	if w.thought.Message == d.MessageID {
		m.Reasoning, m.PassBack = w.thought.Reasoning, w.thought.PassBack
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

func (w *Work) discarded(_ event.Event, d event.MessageDiscardedData) { w.closeMessage(d.MessageID) }

func (w *Work) used(_ event.Event, d event.UsageRecordedData) { w.tally.Record(d) }

func (w *Work) toolCalled(_ event.Event, d event.ToolCalledData) { w.tally.Use(d.Tool) }

func (w *Work) closeMessage(id string) {
	w.Open = slices.DeleteFunc(w.Open, func(m string) bool { return m == id })
	w.partial, w.thought = nil, thought{}
}

// Silent reports whether viewers have been shown nothing of the message that is open.
func (w *Work) Silent() bool { return w == nil || !w.begun }

// final returns the job's last word: a message without tool calls.
func (w *Work) final() (Message, bool) {
	if len(w.Messages) == 0 || len(w.Open) > 0 {
		return Message{}, false
	}
	last := w.Messages[len(w.Messages)-1]
	return last, len(last.ToolCalls) == 0 && !last.stopped()
}

// failed says that a job ended in an error that its worker does not report.
func (w *Work) failed(entry fault.Entry, now time.Time, limit time.Duration) decision.Fact {
	return decision.Fact{ID: w.ID + ".failed", Data: event.JobFailedData{
		RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Code: string(entry.Code), Message: entry.Message,
		Retryable: entry.Retryable, TimeoutSeconds: int(limit / time.Second), ElapsedMS: since(now, w.Started),
		Try: w.Try, MaxTries: w.MaxTries, Part: w.Part,
	}}
}

// Stopped closes the newest open message with the text so far.
func (w *Work) Stopped(message string) event.MessageCompletedData {
	return event.MessageCompletedData{
		MessageID: message, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Role: event.RoleAssistant,
		Content: string(w.partial), StopReason: event.StopStopped, Silent: w.Silent(), Part: w.Part,
	}
}

// Said reports whether people have read a part of the message that is open.
func (w *Work) Said() bool { return w != nil && len(w.Open) > 0 && len(w.partial) > 0 }

// discards closes the messages that a job leaves half said.
func discards(w *Work) []decision.Fact {
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
func stops(w *Work) []decision.Fact {
	list := discards(w)
	if n := len(list) - 1; n >= 0 && len(w.partial) > 0 {
		said := w.Stopped(w.Open[n])
		list[n] = decision.Fact{ID: said.MessageID + ".stopped", Data: said}
	}
	return list
}

// Spent returns how many claims of the job count against the limit: those since it was suspended
// last. Waiting for people costs no attempts.
func (w *Work) Spent() int { return w.Attempt - w.rested }

// Resumption is the id of the work item that has the job taken up again after its
// newest pause.
func (w *Work) Resumption() string { return w.pause + ".resumed" }

func (w *Work) id() string {
	if w == nil {
		return ""
	}
	return w.ID
}
