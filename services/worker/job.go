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
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/tools"
)

const source = "waggle/worker"

// Why an attempt ends early.
var (
	errEnded  = errors.New("the run has ended")
	errFenced = errors.New("another attempt holds the run")
	errPaused = errors.New("all that is left to do waits for people")
	// errSlow is in the fault of an attempt that has used up its time.
	errSlow = errors.New("the attempt takes too long")
)

// turn is one attempt at one job. Everything in it belongs to one goroutine.
type job struct {
	s       *Service
	fold    *fold
	log     *ledger.Log[conversation.State]
	caller  tools.Caller          // the tools of the one that is worked for
	servers map[string]tools.Tool // by name, those of the calls that run
	runID   string
	id      string // of the job: that of the run in a chat run
	tenant  id.Tenant
	begun   conversation.Work   // the job as it was begun: what does not change of it
	state   *conversation.State // of the log
	attempt int
	claim   string // id of our job.started event: the fence
	what    event.Type
	trace   string
	command cmd.Command     // the work item
	at      eventlog.Cursor // a position of the log that has the job; zero: unknown
	item    string          // names the work item: the same at every delivery of it, different for a second one

	offered  map[string]tools.Tool // to the model, in the newest request
	day      day
	denied   *quota.Over   // a tool call was not begun
	answered chan struct{} // holds one when people have answered a question

	images  map[string]string // of the conversation, in base64, by their digests
	standIn string            // the model that is asked from the beginning, in place of one that has failed

	blind    bool // people know that the model is not given images
	toolless bool // people know that the model answers without tools
}

func (s *Service) newJob(c cmd.Command, ref cmd.JobRef) *job {
	j := &job{
		s: s, command: c, item: c.Time.UTC().Format(time.RFC3339Nano), caller: s.deps.Tools, answered: make(chan struct{}, 1),
		runID: ref.RunID, id: ref.Job(), tenant: c.Tenant, trace: c.TraceParent,
	}
	log := subject.Log{Tenant: c.Tenant, Kind: ref.LogKind(), Entity: c.Key}
	if j.fold = s.folds.take(log); j.fold == nil {
		j.fold = s.newFold(log)
	}
	j.log, j.state = j.fold.log, j.fold.log.State()
	return j
}

// run does the rest of the job. ended says that the job no longer needs a worker; an error requests
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
	case w.Paused && j.state.Next(j.id).Kind == conversation.StepWait:
		return false, nil // the answer has it resumed
	case w.Attempt > 0 && w.Item != j.item && !w.Paused:
		// Another work item has brought the job to a worker, and is delivered again if
		// that one dies: this one, a second or an older one, is not needed.
		return false, nil
	}
	if passed, err := j.passOn(ctx); passed || err != nil {
		return false, err
	}
	if err := j.equip(); err != nil {
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

// attend claims the job and works on it until it has ended or waits for people, the
// claim is lost or ctx ends.
func (j *job) attend(ctx context.Context) error {
	if err := j.take(ctx); err != nil {
		return err
	}
	allowed, why := j.timeLimit()
	ctx, cancel := context.WithTimeoutCause(ctx, allowed, why)
	defer cancel()
	ctx, stop := j.watch(ctx)
	defer stop()
	err := j.clockIn(ctx)
	defer j.clockOut()                                                   //nolint:contextcheck // usage is settled even after the job has ended
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
	stopped.Attempt = j.attempt
	return append(j.discards("the work failed", before...), stopped, end)
}

// failure is the event that ends the job: of a chat run the run's own end.
func (j *job) failure(err error) event.Data {
	w, f, said := &j.begun, j.s.asFault(err), j.provider(err)
	if w.Part.JobID == "" {
		return event.RunFailedData{
			RunID: j.runID, ExecutionID: w.ExecutionID, Attempt: j.attempt,
			Code: string(f.Code), Message: f.Public(), Retryable: f.Retryable(), Budget: j.budgetUse(f), Provider: said,
		}
	}
	var allowed time.Duration
	if errors.Is(err, errSlow) {
		allowed = j.s.cfg.TurnTimeout
	}
	return event.JobFailedData{
		RunID: j.runID, ExecutionID: w.ExecutionID, Attempt: j.attempt, Code: string(f.Code), Message: f.Public(),
		Retryable: f.Retryable(), TimeoutSeconds: int(math.Ceil(allowed.Seconds())), ElapsedMS: j.s.cfg.Now().Sub(w.Started).Milliseconds(), Try: w.Try, MaxTries: w.MaxTries, Provider: said, Part: w.Part,
	}
}

// take claims the job with the next attempt number. One whose attempts are
// used up is not claimed again: take returns the fault that ends it.
func (j *job) take(ctx context.Context) error {
	before := j.current()
	base, claim := before.Attempt, j.id+".turn."+j.s.cfg.NewID()
	if before.Spent() >= j.s.cfg.MaxAttempts {
		j.attempt, j.claim = base, before.Claim // the end is written in the dead attempt's name
		return fault.New(fault.AttemptsOver)
	}
	j.claim, j.attempt = claim, base+1
	return j.log.Append(ctx, func(*conversation.State) ([]event.Event, error) {
		w := j.current()
		switch {
		case over(w):
			return nil, errEnded
		case w.Claim == claim:
			return nil, nil
		case w.Attempt != base:
			return nil, errFenced
		}
		return j.events([]string{claim}, event.JobStartedData{
			RunID: j.runID, ExecutionID: j.begun.ExecutionID, Attempt: j.attempt,
			Worker: j.s.deps.Instance.String(), CommandID: j.item, Resumed: base > 0, MaxAttempts: j.s.cfg.MaxAttempts,
			Model: j.model(), MaxTokens: j.s.cfg.MaxTokens, Part: j.begun.Part,
		})
	})
}

// refused records, once, that this attempt was late.
func (j *job) refused(ctx context.Context) error {
	eventID := j.claim + ".refused"
	err := j.log.Append(ctx, func(*conversation.State) ([]event.Event, error) {
		w := j.current()
		if w == nil || w.Refused >= j.attempt {
			return nil, nil
		}
		return j.events([]string{eventID}, event.AttemptRefusedData{
			RunID: j.runID, Attempt: j.attempt, Current: w.Attempt,
			Worker: j.s.deps.Instance.String(), What: j.what, Part: j.begun.Part,
		})
	})
	if err != nil {
		return fmt.Errorf("record the refused attempt: %w", err)
	}
	return nil
}
