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

// retry decides about a failed request to the model. To repeat it, or to ask another model instead, retry discards the
// partial reply, announces the time, and returns nil: the next step makes the request.
func (j *job) retry(ctx context.Context, msg string, err error) error {
	f, ok := errors.AsType[*model.Failure](err)
	if !ok {
		return err
	}
	next, other := j.next(f)
	pause, again := time.Duration(0), other
	if !other {
		if !f.Retry || f.Once && j.current().Outage.Code == string(f.Fault.Code) {
			return err
		}
		pause, again = j.state.Retry(j.id, j.s.cfg.Now(), f.After, j.s.cfg.patience())
	}
	if !again {
		return err
	}
	try := j.current().Outage.Tries + 1
	j.logged(j.s.deps.Logger.Warn(), f).Int("try", try).Dur("pause", pause).Str("next_model", next).Msg("model request will be retried")
	return j.append(ctx,
		event.MessageDiscardedData{
			MessageID: msg, RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt,
			Reason: "the request to the model failed", Silent: j.current().Silent(), Part: j.begun.Part,
		},
		event.RequestFailedData{
			RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt, MessageID: msg, Try: try, MaxTries: j.s.cfg.patience().Tries,
			RetryAfterMS: pause.Milliseconds(), Code: string(f.Fault.Code), Message: fault.Lookup(f.Fault.Code).Problem(), Provider: &f.Said,
			NextModel: next, Part: j.begun.Part,
		})
}

// logged adds the details of a failed request to the model for operators.
func (j *job) logged(e *zerolog.Event, f *model.Failure) *zerolog.Event {
	return e.Str("log", j.log.Ref.Name()).Str("job", j.id).Str("model", j.model()).Str("code", string(f.Fault.Code)).
		Int("provider_status", f.Said.Status).Str("provider_code", f.Said.Code).
		Str("provider_request_id", f.Said.RequestID).Str("provider_message", f.Said.Message)
}

// provider returns the provider's error for the request that ends a job, and logs it; nil if the
// job ends for another reason.
func (j *job) provider(err error) *event.ProviderError {
	f, ok := errors.AsType[*model.Failure](err)
	if !ok {
		return nil
	}
	j.logged(j.s.deps.Logger.Error(), f).Msg("job failed: no response from model")
	return &f.Said
}

// awaitRetry waits until the next request to the model is due. It reports false if the
// run or the day has run out of time before: the next step settles that.
func (j *job) awaitRetry(ctx context.Context) (due bool, _ error) {
	left := j.current().Outage.Next.Sub(j.s.cfg.Now())
	if left <= 0 {
		return true, nil
	}
	talk, hush := j.talk(ctx)
	defer hush()
	over := make(chan struct{})
	defer j.s.cfg.After(left, func() { close(over) })()
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

// patience is how often and how long failed requests to the model are made again.
func (c Config) patience() retry.Patience {
	return retry.Patience{Tries: c.ModelTries, Pause: c.RetryPause, Job: c.RetryTime, Run: c.RunRetryTime}
}
