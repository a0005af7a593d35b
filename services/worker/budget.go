package worker

import (
	"context"
	"errors"
	"time"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation"
)

// budget is the time, the tokens and the calls that an attempt may use: those of its run, and of the day.
type budget struct {
	*attempt

	questions *questions
	day       day
}

// day is the time of an attempt as it is counted for the day.
type day struct {
	clock *quota.Clock
	ctx   context.Context //nolint:containedctx // ends with *quota.Over when the time of the day is used up
	end   context.CancelCauseFunc
}

// timeLimit returns how long the attempt may take, and the error at that time: the limit of an
// attempt, or the rest of the run's budget if that is less and people are not asked for more.
func (b *budget) timeLimit() (time.Duration, error) {
	limit, why := b.s.cfg.JobTimeout, error(fault.New(fault.ModelTimeout).Wrap(errSlow))
	r := b.state.Run(b.runID)
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
func (b *budget) talk(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	undo := context.AfterFunc(b.day.ctx, func() { cancel(context.Cause(b.day.ctx)) })
	stop := func() bool { return true }
	if r := b.state.Run(b.runID); r != nil && r.Asks() {
		if left, ok := r.TimeLeft(); ok {
			// The times of events are cut to milliseconds.
			stop = b.s.cfg.After(left+time.Millisecond, func() { cancel(errTimeUp) })
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

// use is the consumption of a run over its budget.
func (b *budget) use(f *fault.Fault) *event.BudgetUse {
	r := b.state.Run(b.runID)
	if f.Code != fault.BudgetExceeded || r == nil {
		return nil
	}
	use := r.Use()
	return &use
}

// payer is whose quotas the attempt uses.
func (b *budget) payer() quota.Payer {
	p := quota.Payer{Tenant: b.tenant, Principal: b.principal()}
	if r := b.state.Run(b.runID); r != nil {
		p.Granted = r.Granted
	}
	return p
}

// clockIn begins to count the attempt's time.
func (b *budget) clockIn(ctx context.Context) error {
	b.day.ctx, b.day.end = context.WithCancelCause(context.WithoutCancel(ctx))
	end := b.day.end
	clock, err := b.s.deps.Quota.Start(ctx, b.payer(), func(o *quota.Over) { end(o) })
	if err != nil {
		end(err)
		return err
	}
	b.day.clock = clock
	return nil
}

// clockOut ends the count.
func (b *budget) clockOut() {
	b.day.clock.Stop()
	b.day.clock = nil
	b.day.end(nil)
}

// call takes a tool call off the daily quota.
func (b *budget) call(ctx context.Context) error { return b.s.deps.Quota.Call(ctx, b.payer()) }

// spend takes a message off the daily quota.
func (b *budget) spend(ctx context.Context, u event.UsageRecordedData) error {
	usd := 0.0
	if u.CostUSD != nil {
		usd = *u.CostUSD
	}
	return b.s.deps.Quota.Spend(ctx, b.payer(), u.InputTokens+u.OutputTokens, usd)
}

// enough returns *quota.Over if a quota of the day does not allow the step.
func (b *budget) enough(ctx context.Context, st conversation.Action) error {
	if r := b.state.Run(b.runID); r != nil && r.Asking() {
		return nil // lets the open work reach its end
	}
	if b.day.ctx.Err() != nil { // the day may have changed since, or people have answered
		b.clockOut() //nolint:contextcheck // usage is settled even after the job has ended
		if err := b.clockIn(ctx); err != nil {
			return err
		}
	}
	if st.Kind == conversation.ActionGenerate {
		return b.s.deps.Quota.Check(b.payer())
	}
	return nil
}

// allowance handles the error of a step that has reached a daily limit: it asks people and returns
// nil, or returns the error that ends the job.
func (b *budget) allowance(ctx context.Context, err error) error {
	o, ok := errors.AsType[*quota.Over](err)
	if !ok {
		return err
	}
	if o.Ask && b.state.Run(b.runID) != nil {
		return b.questions.aboutQuota(ctx, o)
	}
	b.s.deps.Quota.Refuse(o)
	return err
}
