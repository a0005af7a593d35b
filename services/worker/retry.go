package worker

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/services/conversation/retry"
	"github.com/waggle-dev/waggle/services/model"
)

const (
	// retryPause is the first pause of both vendors' own clients.
	retryPause = 500 * time.Millisecond
	// retryTime is as long as people wait for a chat without an answer before they reload.
	retryTime = 30 * time.Second
	// modelTries fill retryTime with pauses of 0.5, 1, 2, 4, 8, 8 s, and bound the load on
	// a provider that fails at once where the time is longer.
	modelTries = 8
)

// retries decides about requests to the model that have failed.
type retries struct {
	*attempt

	model  *choice
	budget *budget
}

// after decides about a failed request to the model. To repeat it, or to ask another model instead, after discards the
// partial reply, announces the time, and returns nil: the next step makes the request.
func (r *retries) after(ctx context.Context, msg string, err error) error {
	f, ok := errors.AsType[*model.Failure](err)
	if !ok {
		return err
	}
	next, other := r.model.next(f)
	pause, again := time.Duration(0), other
	if !other {
		if !f.Retry || f.Once && r.current().Outage.Code == string(f.Fault.Code) {
			return err
		}
		pause, again = r.state.Retry(r.id, r.s.cfg.Now(), f.After, r.s.cfg.maxWait())
	}
	if !again {
		return err
	}
	try := r.current().Outage.Tries + 1
	r.logged(r.s.deps.Logger.Warn(), f).Int("try", try).Dur("pause", pause).Str("next_model", next).Msg("model request will be retried")
	return r.append(ctx,
		event.MessageDiscardedData{
			MessageID: msg, RunID: r.runID, ExecutionID: r.begun.ExecutionID, Attempt: r.number,
			Reason: "the request to the model failed", Silent: r.current().Silent(), Part: r.begun.Part,
		},
		event.RequestFailedData{
			RunID: r.runID, ExecutionID: r.begun.ExecutionID, Attempt: r.number, MessageID: msg, Try: try, MaxTries: r.s.cfg.maxWait().Tries,
			RetryAfterMS: pause.Milliseconds(), Code: string(f.Fault.Code), Message: fault.Lookup(f.Fault.Code).Problem(), Provider: &f.Said,
			NextModel: next, Part: r.begun.Part,
		})
}

// logged adds the details of a failed request to the model for operators.
func (r *retries) logged(e *zerolog.Event, f *model.Failure) *zerolog.Event {
	return e.Str("log", r.log.Ref.Name()).Str("job", r.id).Str("model", r.model.name()).Str("code", string(f.Fault.Code)).
		Int("provider_status", f.Said.Status).Str("provider_code", f.Said.Code).
		Str("provider_request_id", f.Said.RequestID).Str("provider_message", f.Said.Message)
}

// provider returns the provider's error for the request that ends a job, and logs it; nil if the
// job ends for another reason.
func (r *retries) provider(err error) *event.ProviderError {
	f, ok := errors.AsType[*model.Failure](err)
	if !ok {
		return nil
	}
	r.logged(r.s.deps.Logger.Error(), f).Msg("job failed: no response from model")
	return &f.Said
}

// await waits until the next request to the model is due. It reports false if the
// run or the day has run out of time before: the next step settles that.
func (r *retries) await(ctx context.Context) (due bool, _ error) {
	left := r.current().Outage.Next.Sub(r.s.cfg.Now())
	if left <= 0 {
		return true, nil
	}
	talk, hush := r.budget.talk(ctx)
	defer hush()
	over := make(chan struct{})
	defer r.s.cfg.After(left, func() { close(over) })()
	select {
	case <-over:
		return true, nil
	case <-talk.Done():
	}
	why := cutOff(ctx, talk)
	switch {
	case why == nil:
		return false, context.Cause(ctx)
	case errors.Is(why, errTimeUp):
		return false, nil
	}
	return false, why
}

// maxWait is how often and how long failed requests to the model are made again.
func (c Config) maxWait() retry.MaxWait {
	return retry.MaxWait{Tries: c.ModelTries, Pause: c.RetryPause, Job: c.RetryTime, Run: c.RunRetryTime}
}
