package agent

import (
	"context"
	"errors"

	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/services/conversation"
)

// day is the time of an attempt as it is counted for the day.
type day struct {
	clock *quota.Clock
	ctx   context.Context //nolint:containedctx // ends with *quota.Over when the time of the day is used up
	end   context.CancelCauseFunc
}

// payer is whose quotas the attempt uses.
func (t *turn) payer() quota.Payer {
	p := quota.Payer{Tenant: t.tenant, Principal: t.principal()}
	if r := t.state.Run(t.runID); r != nil {
		p.Granted = r.Granted
	}
	return p
}

// clockIn begins to count the attempt's time.
func (t *turn) clockIn(ctx context.Context) error {
	t.day.ctx, t.day.end = context.WithCancelCause(context.WithoutCancel(ctx))
	end := t.day.end
	clock, err := t.s.deps.Quota.Start(ctx, t.payer(), func(o *quota.Over) { end(o) })
	if err != nil {
		end(err)
		return err
	}
	t.day.clock = clock
	return nil
}

// clockOut ends that.
func (t *turn) clockOut() {
	t.day.clock.Stop()
	t.day.clock = nil
	t.day.end(nil)
}

// enough returns *quota.Over if a quota of the day does not allow the step.
func (t *turn) enough(ctx context.Context, st conversation.Step) error {
	if r := t.state.Run(t.runID); r != nil && r.Asking() {
		return nil // what is left is to be brought to its end
	}
	if t.day.ctx.Err() != nil { // the day may have changed since, or people have answered
		t.clockOut() //nolint:contextcheck // what was used is settled also when the unit has ended
		if err := t.clockIn(ctx); err != nil {
			return err
		}
	}
	if st.Kind == conversation.StepGenerate {
		return t.s.deps.Quota.Check(t.payer())
	}
	return nil
}

// allowance turns the error of a step that has come to a limit of the day into what is to
// be done: people are asked, and the error is nil, or the unit ends with it.
func (t *turn) allowance(ctx context.Context, err error) error {
	o, ok := errors.AsType[*quota.Over](err)
	if !ok {
		return err
	}
	if o.Ask && t.state.Run(t.runID) != nil {
		return t.askQuota(ctx, o)
	}
	t.s.deps.Quota.Refuse(o)
	return err
}

// askQuota asks people whether the run may go on over the limit.
func (t *turn) askQuota(ctx context.Context, o *quota.Over) error {
	granted := t.state.Run(t.runID).Granted(o.Resource.String(), o.Scope, o.Day)
	return t.askOver(ctx, "quota_", func() (q overQuestion, due bool) {
		r := t.state.Run(t.runID)
		if r.Asking() || r.Granted(o.Resource.String(), o.Scope, o.Day) != granted {
			return q, false
		}
		use := r.Use()
		limit, used := o.Amounts()
		use.Resource, use.Granted = o.Resource.String(), granted
		use.Quota = &event.QuotaUse{Scope: o.Scope, Day: o.Day, Limit: limit, Used: used}
		return overQuestion{use, o.Question(), int(o.AskTimeout.Seconds())}, true
	})
}
