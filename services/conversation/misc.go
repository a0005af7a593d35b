package conversation

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation/retry"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// execLayout is the time part of an execution id, down to microseconds.
const execLayout = "20060102_150405.000000"

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

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// final returns the job's last word: a message without tool calls.
func (w *Work) final() (Message, bool) {
	if len(w.Messages) == 0 || len(w.Open) > 0 {
		return Message{}, false
	}
	last := w.Messages[len(w.Messages)-1]
	return last, len(last.ToolCalls) == 0 && !last.stopped()
}

func (in *Input) rejected() bool {
	return in.Answered != nil && in.Answered.Decision == event.DecisionReject
}

// Retry returns the pause before a job's failed request is repeated. ok is false if it is not
// repeated, because the time for retries is used up or would be before then. The provider's wish, after, is
// never shortened.
func (s *State) Retry(workID string, now time.Time, after time.Duration, p retry.Patience) (pause time.Duration, ok bool) {
	w := s.Work(workID)
	if w == nil {
		return 0, false
	}
	pause, ok = p.Before(w.Outage.Tries+1, after, w.ID+w.asked.String())
	due := now.Add(pause)
	if !ok || due.Sub(earliest(w.Outage.Since, w.asked)) > p.Job {
		return 0, false
	}
	r := s.runs[w.RunID]
	return pause, r == nil || !r.exhausted(due, w.asked, p.Run)
}

// exhausted reports whether a request at the time due would exceed the limit for a run without an
// answer of the model. 0 = unlimited.
func (r *Run) exhausted(due, asked time.Time, limit time.Duration) bool {
	since := earliest(r.failing, asked)
	return limit > 0 && !since.IsZero() && due.Sub(since) > limit
}

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

// Stopped closes the newest open message with the text so far.
func (w *Work) Stopped(message string) event.MessageCompletedData {
	return event.MessageCompletedData{
		MessageID: message, RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Role: event.RoleAssistant,
		Content: string(w.partial), StopReason: event.StopStopped, Silent: w.Silent(), Part: w.Part,
	}
}

// Said reports whether people have read a part of the message that is open.
func (w *Work) Said() bool { return w != nil && len(w.Open) > 0 && len(w.partial) > 0 }

// stopped reports whether the job was ended in the middle of the message.
func (m Message) stopped() bool { return m.Stop == event.StopStopped }

// takes returns the fault of an answer with members that are for other questions.
func (in *Input) takes(d command.AnswerQuestion) *fault.Fault {
	switch {
	case len(d.Message) > 0:
		return fault.Newf(fault.InvalidField, "Only agents of the swarm take a message as the answer. Send a decision.")
	case (in.CallID != "" || in.Budget) && (given(d.Steps) || given(d.Modified)):
		return fault.Newf(fault.InvalidField, "Only the answer to a plan may change tasks. The question stays open.")
	case (in.CallID == "" || in.Client) && given(d.Arguments):
		return fault.Newf(fault.InvalidField, "Only the answer to the call of a tool may change arguments. The question stays open.")
	}
	return nil
}

// failed says that a job ended in an error that its worker does not report.
func (w *Work) failed(entry fault.Entry, now time.Time, limit time.Duration) decision.Fact {
	return decision.Fact{ID: w.ID + ".failed", Data: event.JobFailedData{
		RunID: w.RunID, ExecutionID: w.ExecutionID, Attempt: w.Attempt, Code: string(entry.Code), Message: entry.Message,
		Retryable: entry.Retryable, TimeoutSeconds: int(limit / time.Second), ElapsedMS: since(now, w.Started),
		Try: w.Try, MaxTries: w.MaxTries, Part: w.Part,
	}}
}
