package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
)

// Why an attempt ends early.
var (
	errEnded  = errors.New("the job has ended")
	errFenced = errors.New("another attempt holds the job")
	errPaused = errors.New("all that is left to do waits for people")
	// errSlow is in the fault of an attempt that has used up its time.
	errSlow = errors.New("the attempt takes too long")
)

// job composes what one attempt at one job takes. Everything in it belongs to one goroutine.
type job struct {
	*attempt

	fold *fold

	command cmd.Command     // the work item
	at      eventlog.Cursor // a position of the log that has the job; zero: unknown

	model     *choice
	offer     *offer
	calls     *calls
	questions *questions
	budget    *budget
	generator *generator
	retries   *retries
}

func (s *Service) newJob(c cmd.Command, ref cmd.JobRef) *job {
	log := subject.Log{Tenant: c.Tenant, Kind: ref.LogKind(), Entity: c.Key}
	f := s.folds.take(log)
	if f == nil {
		f = s.newFold(log)
	}
	a := newAttempt(s, c, ref, f.log)
	j := &job{
		attempt: a, fold: f, command: c, model: &choice{attempt: a}, offer: &offer{attempt: a, caller: s.deps.Tools},
		questions: &questions{attempt: a, answered: make(chan struct{}, 1)},
	}
	j.budget = &budget{attempt: a, questions: j.questions}
	j.calls = &calls{attempt: a, offer: j.offer, products: &products{attempt: a}, questions: j.questions, budget: j.budget}
	j.retries = &retries{attempt: a, model: j.model, budget: j.budget}
	j.generator = &generator{
		attempt: a, model: j.model, offer: j.offer, budget: j.budget, retries: j.retries,
		composer: &composer{attempt: a, model: j.model, offer: j.offer},
	}
	return j
}

// run does the rest of the job. ended means that the job no longer needs a worker; an error requests
// another delivery.
func (j *job) run(ctx context.Context) (ended bool, err error) {
	ctx = telemetry.Extract(ctx, j.trace)
	ctx, span := telemetry.Start(ctx, "invoke_agent", trace.SpanKindInternal)
	defer func() { telemetry.End(span, err) }()
	j.trace = telemetry.Inject(ctx)

	if err := j.sync(ctx); err != nil {
		return false, err
	}
	if j.state.Deleted {
		j.s.deps.Logger.Info().Stringer("log", j.log.Ref).Str("job", j.id).Msg("job dropped: session deleted")
		return false, nil
	}
	w := j.current()
	if w == nil {
		return false, command.Permanent(fmt.Errorf("%s is not in the log", j.id))
	}
	j.begun = *w
	switch {
	case over(w):
		return true, nil
	case w.Paused && j.state.Next(j.id).Kind == conversation.ActionWait:
		return false, nil // the answer has it resumed
	case w.Attempt > 0 && w.Item != j.item && !w.Paused:
		// Another work item has brought the job to a worker, and is delivered again if
		// that one dies: this one, a second or an older one, is not needed.
		return false, nil
	}
	if passed, err := j.s.passOn(ctx, j.command, j.model.spec()); passed || err != nil {
		return false, err
	}
	if err := j.offer.equip(); err != nil {
		return false, command.Permanent(err)
	}
	return j.conclude(ctx, j.attend(ctx))
}

// sync reads the log up to the job, or to its end.
func (j *job) sync(ctx context.Context) error {
	if j.at == (eventlog.Cursor{}) {
		return j.log.Sync(ctx)
	}
	err := j.log.SyncTo(ctx, j.at)
	if err == nil && j.current() == nil {
		err = j.log.Sync(ctx)
	}
	return err
}

// matters reports whether the service of the log has something to decide after the end of the job. After that of a chat run
// it has to start the next one, if a message waits: one that comes later finds the run ended.
func (j *job) matters() bool {
	return j.log.Ref.Kind != id.KindSession || j.begun.Part.JobID != "" || !j.state.Idle()
}

// watch returns a context that ends when the log shows that this attempt must
// stop: its job has ended, with its run or by itself, or another attempt has claimed
// it. So a cancellation closes the model's HTTP request at once, instead of at the next append.
func (j *job) watch(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	state, seen := j.fold.lend()
	w := &sentinel{job: j.id, claim: j.claimID, from: j.log.Cursor().Seq, state: state, cancel: cancel, answered: j.questions.answered}
	v := j.s.deps.Log.Watch(j.log.Ref, seen, w)
	return ctx, func() {
		v.Close()
		j.fold.seen, j.fold.broken = v.Position(), w.broken
		cancel(nil)
	}
}

// attend claims the job and works on it until it has ended or waits for people, the
// claim is lost or ctx ends.
func (j *job) attend(ctx context.Context) error {
	if err := j.claim(ctx, j.model.name()); err != nil {
		return err
	}
	allowed, why := j.budget.timeLimit()
	ctx, cancel := context.WithTimeoutCause(ctx, allowed, why)
	defer cancel()
	ctx, stop := j.watch(ctx)
	defer stop()
	err := j.budget.clockIn(ctx)
	defer j.budget.clockOut()                                            //nolint:contextcheck // usage is settled even after the job has ended
	if _, over := errors.AsType[*quota.Over](err); err != nil && !over { // a step that takes time finds that out
		return err
	}
	for {
		err := j.step(ctx)
		if err == nil {
			j.log.Keep(ctx)
			continue
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, errEnded) && !errors.Is(err, errPaused) {
			return cause
		}
		return err
	}
}

// conclude settles the end of the attempt: last message written, suspended, claim lost, job ended
// by another process, failed, or interrupted and to be resumed.
func (j *job) conclude(ctx context.Context, err error) (ended bool, _ error) {
	switch {
	case errors.Is(err, errEnded):
		return true, nil
	case errors.Is(err, errPaused):
		return false, nil
	case errors.Is(err, errFenced):
		return false, j.refused(ctx)
	case ctx.Err() != nil:
		return false, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case errors.Is(err, fault.New(fault.BusUnavailable)):
		return false, err
	}
	err = j.append(ctx, j.failed(err)...)
	switch {
	case errors.Is(err, errFenced):
		return false, j.refused(ctx)
	case errors.Is(err, errEnded):
		return true, nil
	}
	return err == nil, err
}

// step does the next thing that the log says is left to do.
func (j *job) step(ctx context.Context) error {
	if err := j.held(); err != nil {
		return err
	}
	switch st := j.state.Next(j.id); st.Kind {
	case conversation.ActionDiscard:
		return j.discard(ctx, "the worker that wrote it is gone", st.Discard...)
	case conversation.ActionCalls, conversation.ActionGenerate:
		err := j.budget.enough(ctx, st)
		if err == nil {
			err = j.proceed(ctx, st)
		}
		return j.budget.allowance(ctx, err)
	case conversation.ActionWait:
		return j.questions.pause(ctx)
	case conversation.ActionFinish:
		return j.finish(ctx, st.Answer)
	case conversation.ActionAsk:
		return j.questions.aboutBudget(ctx)
	case conversation.ActionStop:
		return conversation.BudgetFault(st.Use)
	case conversation.ActionNone:
	}
	return errEnded
}

// proceed has the model or the tools do something.
func (j *job) proceed(ctx context.Context, st conversation.Action) error {
	if st.Kind == conversation.ActionCalls {
		return j.calls.bring(ctx, st)
	}
	if st.Rounds >= j.s.cfg.MaxRounds {
		return fault.New(fault.TurnLimit)
	}
	return j.generator.generate(ctx)
}

func (j *job) finish(ctx context.Context, answer conversation.Message) error {
	r := &j.begun
	if r.Part.JobID != "" {
		return errEnded // the pipeline decides about the result
	}
	err := j.append(ctx, event.RunCompletedData{
		RunID: j.runID, ExecutionID: r.ExecutionID, Attempt: j.number, MessageID: answer.ID,
		Content: answer.Content, StopReason: answer.Stop, DurationMS: j.s.cfg.Now().Sub(r.Started).Milliseconds(), Usage: j.used(),
	})
	if err != nil {
		return err
	}
	return errEnded
}

// used is the usage of a chat run, whose only job this is; nil if no model was called.
func (j *job) used() *event.Usage {
	w := j.current()
	if w == nil || w.Tally.Calls == 0 {
		return nil
	}
	u := w.Tally.Usage()
	return &u
}

// failed returns the events that end the job. It closes the unfinished message of a chat run first, with the text that
// people have read; the pipeline does that for other jobs.
func (j *job) failed(err error) []event.Data {
	end, w := j.failure(err), j.current()
	if w == nil || j.begun.Part.JobID != "" || len(w.Open) == 0 {
		return []event.Data{end}
	}
	before, newest := w.Open[:len(w.Open)-1], w.Open[len(w.Open)-1]
	if !w.Said() {
		return append(j.discards("the work failed", w.Open...), end)
	}
	stopped := w.Stopped(newest)
	stopped.Attempt = j.number
	return append(j.discards("the work failed", before...), stopped, end)
}

// failure is the event that ends the job: of a chat run the run's own end.
func (j *job) failure(err error) event.Data {
	w, f, said := &j.begun, j.s.asFault(err), j.retries.provider(err)
	if w.Part.JobID == "" {
		return event.RunFailedData{
			RunID: j.runID, ExecutionID: w.ExecutionID, Attempt: j.number,
			Code: string(f.Code), Message: f.Public(), Retryable: f.Retryable(), Budget: j.budget.use(f), Provider: said,
			Usage: j.used(),
		}
	}
	var allowed time.Duration
	if errors.Is(err, errSlow) {
		allowed = j.s.cfg.JobTimeout
	}
	return event.JobFailedData{
		RunID: j.runID, ExecutionID: w.ExecutionID, Attempt: j.number, Code: string(f.Code), Message: f.Public(),
		Retryable: f.Retryable(), TimeoutSeconds: int(math.Ceil(allowed.Seconds())), ElapsedMS: j.s.cfg.Now().Sub(w.Started).Milliseconds(), Try: w.Try, MaxTries: w.MaxTries, Provider: said, Part: w.Part,
	}
}
