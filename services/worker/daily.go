package worker

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
func (j *job) payer() quota.Payer {
	p := quota.Payer{Tenant: j.tenant, Principal: j.principal()}
	if r := j.state.Run(j.runID); r != nil {
		p.Granted = r.Granted
	}
	return p
}

// clockIn begins to count the attempt's time.
func (j *job) clockIn(ctx context.Context) error {
	j.day.ctx, j.day.end = context.WithCancelCause(context.WithoutCancel(ctx))
	end := j.day.end
	clock, err := j.s.deps.Quota.Start(ctx, j.payer(), func(o *quota.Over) { end(o) })
	if err != nil {
		end(err)
		return err
	}
	j.day.clock = clock
	return nil
}

// clockOut ends that.
func (j *job) clockOut() {
	j.day.clock.Stop()
	j.day.clock = nil
	j.day.end(nil)
}

// enough returns *quota.Over if a quota of the day does not allow the step.
func (j *job) enough(ctx context.Context, st conversation.Step) error {
	if r := j.state.Run(j.runID); r != nil && r.Asking() {
		return nil // lets the open work reach its end
	}
	if j.day.ctx.Err() != nil { // the day may have changed since, or people have answered
		j.clockOut() //nolint:contextcheck // usage is settled even after the job has ended
		if err := j.clockIn(ctx); err != nil {
			return err
		}
	}
	if st.Kind == conversation.StepGenerate {
		return j.s.deps.Quota.Check(j.payer())
	}
	return nil
}

// allowance handles the error of a step that has reached a daily limit: it asks people and returns
// nil, or returns the error that ends the job.
func (j *job) allowance(ctx context.Context, err error) error {
	o, ok := errors.AsType[*quota.Over](err)
	if !ok {
		return err
	}
	if o.Ask && j.state.Run(j.runID) != nil {
		return j.askQuota(ctx, o)
	}
	j.s.deps.Quota.Refuse(o)
	return err
}

// askQuota asks people whether the run may continue over the limit.
func (j *job) askQuota(ctx context.Context, o *quota.Over) error {
	granted := j.state.Run(j.runID).Granted(o.Resource.String(), o.Scope, o.Day)
	return j.askOver(ctx, "quota_", func() (q overQuestion, due bool) {
		r := j.state.Run(j.runID)
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
