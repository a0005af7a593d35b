package conversation

import (
	"fmt"
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation/retry"
	"github.com/waggle-dev/waggle/services/conversation/usage"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/plan"
)

// maxRaw bounds the quotation of an invalid plan, in bytes.
const maxRaw = 2000

// Outcomes of a pipeline run, and the states in which it is summed up.
const (
	success        = "success"
	partialSuccess = "partial_success"
	failure        = "failed"
	rejected       = "rejected"
	cancelled      = "cancelled"
	timedOut       = "timeout"
)

// Reasons why a plan is cancelled, besides timedOut.
const (
	userRequest  = "user_request"
	reasonError  = "error"
	reasonReplan = "replan"
)

// Reasons of a restart.
const (
	restartAfterError    = "retry_after_error"
	restartUser          = "user_request"
	restartForDependency = "dependency_restarted"
)

// advance returns the events that follow from the state at the given time without a command: the
// next step of the active run, or the start of the next run.
func (s *State) advance(now time.Time, rules Rules) []decision.Fact {
	r := s.Active()
	switch {
	case s.Closed:
		return nil
	case r == nil:
		return s.next(now, rules)
	}
	if list := s.overBudget(r, now); len(list) > 0 {
		return list
	}
	switch {
	case s.InSwarm(r):
		return s.concluded(r, now)
	case r.Pipeline == nil:
		return nil // the worker of a chat run ends it
	}
	d := director{s: s, r: r, p: r.Pipeline, now: now, rules: rules}
	if list := d.unsound(); len(list) > 0 {
		return list
	}
	switch r.Pipeline.Phase {
	case Planning:
		return d.plan()
	case Confirming:
		return d.confirm()
	case Solving:
		return d.solve()
	case Aggregating:
		return d.aggregate()
	case Done:
	}
	return nil
}

// director decides the steps of one pipeline run.
type director struct {
	s     *State
	r     *Run
	p     *Pipeline
	now   time.Time
	rules Rules
}

func (d director) plan() []decision.Fact {
	p := d.p
	switch {
	case p.Dropped != "":
		return []decision.Fact{d.drop()}
	case p.Planned && d.s.confirms(d.r, d.rules):
		return []decision.Fact{d.ask()}
	case p.Planned:
		return d.solve()
	case p.Retry != nil:
		if d.now.Before(p.Retry.Due) {
			return nil
		}
		return []decision.Fact{d.startPlan(p.Question)}
	case len(p.Invalid) > d.rules.Replans:
		return []decision.Fact{d.runFailed(fault.Lookup(fault.PlanFailed), "", "")}
	case p.Job == nil || p.Job.Ended:
		return []decision.Fact{d.startPlan(p.Question)}
	case p.Job.Failure != nil:
		return d.planJobFailed(p.Job)
	}
	if m, ok := p.Job.final(); ok {
		return []decision.Fact{d.judge(p.Job, m)}
	}
	return nil
}

// final returns the job's last word: a message without tool calls.
func (w *Work) final() (Message, bool) {
	if len(w.Messages) == 0 || len(w.Open) > 0 {
		return Message{}, false
	}
	last := w.Messages[len(w.Messages)-1]
	return last, len(last.ToolCalls) == 0 && !last.stopped()
}

func (d director) startPlan(question string) decision.Fact {
	n := d.p.Plans + 1
	work := fmt.Sprintf("%s.plan.%d", d.r.ID, n)
	return decision.Fact{ID: work + ".started", Data: event.PlanStartedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: fmt.Sprintf("plan_%s_%d", short(d.r.ID), n),
		Number: n, MaxTries: d.p.Plans + d.triesLeft(), Question: question, Context: d.p.Context,
		Part: event.Part{JobID: work, Stage: event.StagePlanning},
	}}
}

// triesLeft is how often the plan or the aggregate may still be tried.
func (d director) triesLeft() int { return max(1, d.rules.Tries-d.p.retries) }

// short is enough of a run's id to tell the runs of a session apart.
func short(runID string) string {
	_, hash, _ := strings.Cut(runID, "_")
	return hash[:min(len(hash), 12)]
}

// judge parses the planner's text into plan.completed, or returns the event that says why the plan
// is invalid.
func (d director) judge(w *Work, m Message) decision.Fact {
	made, err := plan.Coerce([]byte(m.Content))
	if err != nil {
		recovery := "retry"
		if len(d.p.Invalid) >= d.rules.Replans {
			recovery = "none"
		}
		return decision.Fact{ID: w.ID + ".invalid", Data: event.PlanInvalidData{
			RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: d.p.PlanID, Code: string(fault.PlanInvalid),
			Message: fault.From(err, "").Public(), Raw: clip(m.Content, maxRaw), Recovery: recovery, Part: w.Part,
		}}
	}
	return decision.Fact{ID: w.ID + ".completed", Data: event.PlanCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: d.p.PlanID, Steps: made.Tasks,
		Summary: made.Summary, Reasoning: made.Reasoning, Usage: w.tally.Usage(), DurationMS: since(d.now, w.Started), Part: w.Part,
	}}
}

func clip(s string, limit int) string {
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "")
	}
	return s
}

func since(now, then time.Time) int64 {
	if then.IsZero() {
		return 0
	}
	return max(0, now.Sub(then).Milliseconds())
}

// planJobFailed tries again after a pause, or gives the run up.
func (d director) planJobFailed(w *Work) []decision.Fact {
	if retry, ok := d.retry(w, d.p.retries+1, d.rules.Tries); ok {
		return append(discards(w), retry)
	}
	return append(discards(w), d.planCancelled(w.ID, reasonError, "", ""))
}

// drop ends a run whose plan will not be carried out, a step at a time.
func (d director) drop() decision.Fact {
	p := d.p
	switch {
	case p.Dropped == reasonError:
		f := p.Job.Failure
		return d.runFailed(fault.Lookup(fault.Code(f.Code)), f.Message, "")
	case p.Dropped == timedOut && !p.Input.Expired:
		in := p.Input
		return decision.Fact{ID: in.ID + ".expired", Data: event.InputExpiredData{
			InputID: in.ID, RunID: d.r.ID, ExecutionID: d.r.ExecutionID,
			TimeoutSeconds: int(in.Timeout / time.Second), ElapsedMS: since(d.now, in.Asked),
		}}
	case p.Dropped == timedOut:
		return d.runCompleted(timedOut, "The plan was not confirmed in time, and nothing was done.", "")
	case p.Input != nil && p.Input.rejected():
		text := "The plan was rejected, and nothing was done."
		if why := p.Input.Answered.Feedback; why != "" {
			text += " Reason given: " + why
		}
		return d.runCompleted(rejected, text, "")
	}
	return d.runCompleted(cancelled, "The plan was cancelled, and nothing was done.", "")
}

func (in *Input) rejected() bool {
	return in.Answered != nil && in.Answered.Decision == event.DecisionReject
}

// retry schedules another attempt at a failed job, unless that cannot help.
func (d director) retry(w *Work, attempt, tries int) (decision.Fact, bool) {
	f := w.Failure
	if !f.Retryable || attempt >= tries {
		return decision.Fact{}, false
	}
	pause := retry.Backoff(d.rules.Backoff, attempt, w.ID)
	if retry.Transient(f.Code) && d.r.exhausted(d.now.Add(pause), time.Time{}, d.rules.Patience) {
		return decision.Fact{}, false
	}
	return decision.Fact{ID: w.ID + ".retry", Data: event.RetryScheduledData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Attempt: attempt, MaxAttempts: tries,
		RetryAfterMS: pause.Milliseconds(), Code: f.Code, Message: f.Message, Part: w.Part,
	}}, true
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

func (s *State) confirms(r *Run, rules Rules) bool {
	switch {
	case r.Spec.Mode != event.ModePlan:
		return false
	case r.Pipeline.Input != nil && r.Pipeline.Input.Answered != nil && r.Pipeline.Input.PlanID == r.Pipeline.PlanID:
		return false
	case r.Spec.ConfirmPlan != nil:
		return *r.Spec.ConfirmPlan
	case s.Preferences.ConfirmPlan != nil:
		return *s.Preferences.ConfirmPlan
	}
	return rules.ConfirmPlan
}

func (d director) ask() decision.Fact {
	input := fmt.Sprintf("plan_confirm_%s_%d", short(d.r.ID), d.p.Plans)
	return decision.Fact{ID: fmt.Sprintf("%s.requested.%d", input, d.s.Seq), Data: event.InputRequestedData{
		InputID: input, RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Scope: "plan", PlanID: d.p.PlanID,
		Steps: d.p.list(), Summary: d.p.Summary, TimeoutSeconds: int(d.rules.ConfirmTimeout / time.Second),
	}}
}

func (d director) confirm() []decision.Fact {
	in := d.p.Input
	switch {
	case d.p.Dropped != "":
		return []decision.Fact{d.drop()}
	case !d.p.Planned: // another plan was requested
		return d.plan()
	case in.rejected():
		return []decision.Fact{d.planCancelled(in.ID, userRequest, in.Answered.By, in.Answered.Feedback)}
	case in.Answered != nil:
		return d.solve()
	case in.Over:
		return []decision.Fact{d.ask()}
	case d.now.Before(in.Asked.Add(in.Timeout)):
		return nil
	}
	return []decision.Fact{d.planCancelled(in.ID, timedOut, "", "")}
}

// planCancelled ends a plan that is made or being made. by is who asked for it.
func (d director) planCancelled(eventID, reason, by, feedback string) decision.Fact {
	data := event.PlanCancelledData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, PlanID: d.p.PlanID, Reason: reason, By: by, Feedback: feedback,
		Steps: d.p.list(), DurationMS: since(d.now, d.p.planStarted),
	}
	if d.p.Job != nil {
		data.Part = d.p.Job.Part
	}
	return decision.Fact{ID: eventID + ".plan-cancelled", Data: data}
}

// runCompleted ends the run with an answer.
func (d director) runCompleted(outcome, answer, message string) decision.Fact {
	u := d.usage()
	data := event.RunCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Attempt: 1, MessageID: message, Content: answer,
		DurationMS: since(d.now, d.r.Started), Outcome: outcome, Usage: &u,
	}
	return decision.Fact{ID: d.r.ID + ".completed", Data: data}
}

func (d director) runFailed(entry fault.Entry, message, answer string) decision.Fact {
	u := d.usage()
	return decision.Fact{ID: d.r.ID + ".failed", Data: event.RunFailedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Code: string(entry.Code), Message: orElse(message, entry.Message),
		Retryable: entry.Retryable, Answer: answer, Usage: &u, DurationMS: since(d.now, d.r.Started),
	}}
}

func (d director) usage() event.Usage {
	var t usage.Tally
	for _, w := range d.r.works {
		t.Add(w.tally)
	}
	return t.Usage()
}

// unsound ends a run whose tasks, as the client gave them, cannot be solved.
func (d director) unsound() []decision.Fact {
	if d.r.Spec.Mode != event.ModeSteps || d.p.Planned {
		return nil
	}
	err := plan.Check(d.r.Spec.Steps)
	switch {
	case err == nil:
		return nil
	case len(d.p.Invalid) > 0:
		return []decision.Fact{d.runFailed(fault.Lookup(fault.PlanInvalid), d.p.Invalid[0], "")}
	}
	return []decision.Fact{{ID: d.r.ID + ".invalid", Data: event.PlanInvalidData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Code: string(fault.PlanInvalid),
		Message: fault.From(err, "").Public(), Recovery: "manual_input",
	}}}
}
