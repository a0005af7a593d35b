package agent

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

// principal is who the run is for.
func (t *turn) principal() string {
	if r := t.state.Run(t.runID); r != nil && r.Principal != "" {
		return r.Principal
	}
	return t.state.Principal
}

// timeLimit is how long the attempt may take, and why it ends then: what an attempt may,
// or what is left of the run's budget if that is less and nobody is asked for more.
func (t *turn) timeLimit() (time.Duration, error) {
	limit, why := t.s.cfg.TurnTimeout, error(fault.New(fault.ModelTimeout).Wrap(errSlow))
	r := t.state.Run(t.runID)
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
func (t *turn) talk(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	undo := context.AfterFunc(t.day.ctx, func() { cancel(context.Cause(t.day.ctx)) })
	stop := func() bool { return true }
	if r := t.state.Run(t.runID); r != nil && r.Asks() {
		if left, ok := r.TimeLeft(); ok {
			// The times of events are cut to milliseconds.
			stop = t.s.cfg.After(left+time.Millisecond, func() { cancel(errTimeUp) })
		}
	}
	return ctx, func() {
		undo()
		stop()
		cancel(nil)
	}
}

// cutOff returns why a request to a model was closed before its end though its attempt
// goes on, nil if it was not.
func cutOff(parent, ctx context.Context) error {
	cause := context.Cause(ctx)
	if _, over := errors.AsType[*quota.Over](cause); parent.Err() == nil && (over || errors.Is(cause, errTimeUp)) {
		return cause
	}
	return nil
}

// budgetUse is what a run that is over its budget has used up.
func (t *turn) budgetUse(f *fault.Fault) *event.BudgetUse {
	r := t.state.Run(t.runID)
	if f.Code != fault.BudgetExceeded || r == nil {
		return nil
	}
	use := r.Use()
	return &use
}

// askBudget asks people whether the run gets its budget once more.
func (t *turn) askBudget(ctx context.Context) error {
	return t.askOver(ctx, "budget_", func() (q overQuestion, due bool) {
		st := t.state.Next(t.unit)
		use := st.Use
		return overQuestion{use, conversation.BudgetQuestion(use), use.Limit.AskSeconds}, st.Kind == conversation.StepAsk
	})
}

// overQuestion is the question whether a run may go on over a limit.
type overQuestion struct {
	use     event.BudgetUse
	text    string
	seconds int // for the answer; 0 = for ever
}

// askOver asks people, if the question is due by the log to which it is appended: units
// of a run that come to that side by side ask once.
func (t *turn) askOver(ctx context.Context, prefix string, ask func() (q overQuestion, due bool)) error {
	return t.log.Put(ctx, []string{t.s.cfg.NewID()}, func(_ *conversation.State, left []string) ([]event.Event, error) {
		t.what = event.InputRequested
		if err := t.held(); err != nil {
			return nil, err
		}
		q, due := ask()
		if !due {
			return nil, nil
		}
		return t.events(left, event.InputRequestedData{
			InputID: prefix + left[0], RunID: t.runID, ExecutionID: t.job.ExecutionID, Scope: event.ScopeBudget,
			Attempt: t.attempt, Budget: &q.use, Summary: q.text, TimeoutSeconds: q.seconds,
		})
	})
}

// tellOfDeadline has whoever manages the log look at the question that the unit waits
// for, if that does not stay open for ever. It is told before the unit is put down, so
// that a worker that dies in between leaves it to the next one.
func (t *turn) tellOfDeadline(ctx context.Context) error {
	r := t.state.Run(t.runID)
	if r == nil {
		return nil
	}
	input, ok := r.Expiring()
	if !ok {
		return nil
	}
	ref := cmd.JobRef{RunID: t.runID, JobID: t.job.Part.JobID}
	if t.log.Ref.Kind != id.KindSession {
		ref.Kind = t.log.Ref.Kind
	}
	c := cmd.Command{Tenant: t.log.Ref.Tenant, Key: t.log.Ref.Entity, TraceParent: t.trace}
	return t.s.report(ctx, c, ref, cmd.SettleJob, input+".asked", ref)
}
