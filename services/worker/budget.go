package worker

import (
	"context"
	"errors"
	"time"

	"github.com/waggle-dev/waggle/internal/quota"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/conversation"
)

// principal returns the principal of the run.
func (j *job) principal() string {
	if r := j.state.Run(j.runID); r != nil && r.Principal != "" {
		return r.Principal
	}
	return j.state.Principal
}

// timeLimit returns how long the attempt may take, and the error at that time: the limit of an
// attempt, or the rest of the run's budget if that is less and people are not asked for more.
func (j *job) timeLimit() (time.Duration, error) {
	limit, why := j.s.cfg.TurnTimeout, error(fault.New(fault.ModelTimeout).Wrap(errSlow))
	r := j.state.Run(j.runID)
	if r == nil || r.Asks() {
		return limit, why
	}
	if left, ok := r.TimeLeft(); ok && left < limit {
		use := r.Use()
		use.Resource, use.Seconds = event.BudgetSeconds, use.Limit.Seconds
		return left, conversation.BudgetFault(use)
	}
	return limit, why
}

// errTimeUp ends a request to a model whose run has to ask people for more time.
var errTimeUp = errors.New("the time of the run's budget is used up")

// talk returns the context of a request to a model. Where people are asked for more time
// it ends when that of the run's budget is up, or that of the day: the request is closed
// then, while tools that run are let finish.
func (j *job) talk(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	undo := context.AfterFunc(j.day.ctx, func() { cancel(context.Cause(j.day.ctx)) })
	stop := func() bool { return true }
	if r := j.state.Run(j.runID); r != nil && r.Asks() {
		if left, ok := r.TimeLeft(); ok {
			// The times of events are cut to milliseconds.
			stop = j.s.cfg.After(left+time.Millisecond, func() { cancel(errTimeUp) })
		}
	}
	return ctx, func() {
		undo()
		stop()
		cancel(nil)
	}
}

// cutOff returns why a request to a model was closed early while its attempt continues, or nil.
func cutOff(parent, ctx context.Context) error {
	cause := context.Cause(ctx)
	if _, over := errors.AsType[*quota.Over](cause); parent.Err() == nil && (over || errors.Is(cause, errTimeUp)) {
		return cause
	}
	return nil
}

// budgetUse is the consumption of a run over its budget.
func (j *job) budgetUse(f *fault.Fault) *event.BudgetUse {
	r := j.state.Run(j.runID)
	if f.Code != fault.BudgetExceeded || r == nil {
		return nil
	}
	use := r.Use()
	return &use
}

// askBudget asks people whether to renew the run's budget.
func (j *job) askBudget(ctx context.Context) error {
	return j.askOver(ctx, "budget_", func() (q overQuestion, due bool) {
		st := j.state.Next(j.id)
		use := st.Use
		return overQuestion{use, conversation.BudgetQuestion(use), use.Limit.AskSeconds}, st.Kind == conversation.StepAsk
	})
}

// overQuestion is the question whether a run may continue over a limit.
type overQuestion struct {
	use     event.BudgetUse
	text    string
	seconds int // for the answer; 0 = for ever
}

// askOver asks people, if the question is due by the log to which it is appended: jobs
// of a run that come to that side by side ask once.
func (j *job) askOver(ctx context.Context, prefix string, ask func() (q overQuestion, due bool)) error {
	j.what = event.InputRequested
	return j.log.Put(ctx, []string{j.s.cfg.NewID()}, func(_ *conversation.State, left []string) ([]event.Event, error) {
		if err := j.held(); err != nil {
			return nil, err
		}
		q, due := ask()
		if !due {
			return nil, nil
		}
		return j.events(left, event.InputRequestedData{
			InputID: prefix + left[0], RunID: j.runID, ExecutionID: j.begun.ExecutionID, Scope: event.ScopeBudget,
			Attempt: j.attempt, Budget: &q.use, Summary: q.text, TimeoutSeconds: q.seconds,
		})
	})
}

// tellOfDeadline makes the service of the log set a timer for the job's question, if the question
// expires. It comes before the suspension, so that a worker that dies in between leaves it to the
// next one.
func (j *job) tellOfDeadline(ctx context.Context) error {
	r := j.state.Run(j.runID)
	if r == nil {
		return nil
	}
	input, ok := r.Expiring()
	if !ok {
		return nil
	}
	ref := cmd.JobRef{RunID: j.runID, JobID: j.begun.Part.JobID}
	if j.log.Ref.Kind != id.KindSession {
		ref.Kind = j.log.Ref.Kind
	}
	c := cmd.Command{Tenant: j.log.Ref.Tenant, Key: j.log.Ref.Entity, TraceParent: j.trace}
	return j.s.report(ctx, c, ref, cmd.SettleJob, input+".asked", ref)
}
