package conversation

import (
	"strings"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation/retry"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/plan"
)

// Outcomes of a planned run.
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

// director decides what follows in a run. p is nil in a chat.
type director struct {
	s     *State
	r     *Run
	p     *Plan
	now   time.Time
	rules Rules
}

// unsound ends a run whose steps, as the client gave them, make no valid plan.
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

// retry schedules another attempt at a failed job, unless that cannot help.
func (d director) retry(j *Job, attempt, tries int) (decision.Fact, bool) {
	f := j.Failure
	if !f.Retryable || attempt >= tries {
		return decision.Fact{}, false
	}
	pause := retry.Backoff(d.rules.Backoff, attempt, j.ID)
	if retry.Transient(f.Code) && d.r.exhausted(d.now.Add(pause), time.Time{}, d.rules.MaxWait) {
		return decision.Fact{}, false
	}
	return decision.Fact{ID: j.ID + ".retry", Data: event.RetryScheduledData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Attempt: attempt, MaxAttempts: tries,
		RetryAfterMS: pause.Milliseconds(), Code: f.Code, Message: f.Message, Part: j.Part,
	}}, true
}

// triesLeft is how often the plan or the aggregate may still be tried.
func (d director) triesLeft() int { return max(1, d.rules.Tries-d.p.Retries) }

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
	t := d.r.tally()
	return t.Usage()
}

// stop cancels everything open in the run. The end of the run has the reason; its plan and steps show
// a request of a user.
func (d director) stop(c command.Command) []decision.Fact {
	var list []decision.Fact
	p := d.p
	if p.Job != nil {
		list = append(list, stops(p.Job)...)
	}
	if p.Phase == Planning || p.Phase == Confirming {
		if p.Dropped != "" {
			return list
		}
		return append(list, planner{d}.planCancelled(c.ID+"."+d.r.ID, userRequest, c.Principal, ""))
	}
	for _, t := range p.Steps {
		if !t.Final() {
			list = append(list, solver{d}.endStep(t, c.ID+".cancelled."+t.ID, c.Principal, stops)...)
		}
	}
	return list
}

// overBudget ends a run whose budget is not extended: people declined or did not answer, or one of
// its jobs was stopped. An unanswered question expires first.
func (d director) overBudget() []decision.Fact {
	q := d.r.question()
	switch {
	case q != nil && q.expires() && !d.now.Before(q.Asked.Add(q.Timeout)):
		return []decision.Fact{{ID: q.ID + ".expired", Data: event.InputExpiredData{
			InputID: q.ID, RunID: d.r.ID, ExecutionID: d.r.ExecutionID,
			TimeoutSeconds: int(q.Timeout / time.Second), ElapsedMS: since(d.now, q.Asked), Scope: event.ScopeBudget,
		}}}
	case q != nil && (q.rejected() || q.Expired), d.r.stopped() != nil:
		return d.failBudget()
	}
	return nil
}

func (d director) failBudget() []decision.Fact {
	var list []decision.Fact
	if d.r.Plan != nil {
		list = d.stop(command.Command{ID: d.r.ID + ".budget"})
	} else {
		for _, j := range d.r.Jobs {
			list = append(list, stops(j)...)
		}
	}
	if why := d.r.outOfQuota(); why != nil {
		return append(list, d.runFailed(fault.Lookup(fault.QuotaExceeded), why.Message, ""))
	}
	use, _ := d.r.exceeded(true)
	entry := fault.Lookup(fault.BudgetExceeded)
	failed := d.runFailed(entry, BudgetFault(use).Message, "")
	if data, ok := failed.Data.(event.RunFailedData); ok {
		data.Budget = &use
		failed.Data = data
	}
	return append(list, failed)
}

// concluded ends a run that an agent of the swarm has answered.
func (d director) concluded() []decision.Fact {
	j := d.s.Job(d.r.ID)
	if j == nil || j.Ended {
		return nil
	}
	m, said := j.final()
	if !said {
		return nil
	}
	return []decision.Fact{{ID: d.r.ID + ".completed", Data: event.RunCompletedData{
		RunID: d.r.ID, ExecutionID: d.r.ExecutionID, Attempt: max(j.Attempt, 1), MessageID: m.ID, Content: m.Content,
		DurationMS: since(d.now, d.r.Started),
	}}}
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

// short is enough of the id of a run to distinguish the runs of a session.
func short(runID string) string {
	_, hash, _ := strings.Cut(runID, "_")
	return hash[:min(len(hash), 12)]
}

// maxSummary bounds the summary of a run, in bytes: a line or two for people.
const maxSummary = 500
