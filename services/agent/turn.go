package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
)

const source = "waggle/agent"

// Why an attempt ends early.
var (
	errEnded  = errors.New("the run has ended")
	errFenced = errors.New("another attempt holds the run")
)

// turn is one attempt of one run. Everything in it belongs to one goroutine.
type turn struct {
	s       *Service
	log     subject.Log
	runID   string
	unit    string // the unit of work: the run itself in a chat run
	tenant  id.Tenant
	state   conversation.State
	writer  *eventlog.Writer
	broken  error // the log holds an event that cannot be folded
	attempt int
	claim   string   // id of our turn.started event: the fence
	unsent  []unsent // what is being appended
	what    event.Type
	trace   string
	work    string // names the work item: the same at every delivery of it, different for a second one
}

func (s *Service) newTurn(c cmd.Command, ref cmd.WorkRef) *turn {
	t := &turn{
		s: s, runID: ref.RunID, unit: ref.Unit(), tenant: c.Tenant, trace: c.TraceParent, work: c.Time.UTC().Format(time.RFC3339Nano),
		log: subject.Log{Tenant: c.Tenant, Kind: id.KindSession, Entity: c.Key},
	}
	t.writer = s.deps.Log.Writer(t.log, t.observe)
	return t
}

func (t *turn) observe(e *eventlog.Entry) {
	if err := t.state.Apply(e.Event); err != nil && t.broken == nil {
		t.broken = err
	}
	if len(t.unsent) > 0 && t.unsent[0].id == e.ID {
		t.unsent = t.unsent[1:]
	}
}

// run does what is left of the run. ended says that the run has its terminal
// event; an error asks for another delivery.
func (t *turn) run(ctx context.Context, d command.Delivery) (ended bool, err error) {
	ctx = telemetry.Extract(ctx, t.trace)
	ctx, span := telemetry.Start(ctx, "invoke_agent", trace.SpanKindInternal)
	defer func() { telemetry.End(span, err) }()
	t.trace = telemetry.Inject(ctx)

	if err := t.writer.Sync(ctx); err != nil {
		return false, err
	}
	if t.broken != nil {
		return false, command.Permanent(t.broken)
	}
	w := t.current()
	switch {
	case w == nil:
		return false, command.Permanent(fmt.Errorf("%s is not in the log", t.unit))
	case w.Ended || w.Failure != nil:
		return true, nil
	case w.Attempt > 0 && d.Attempt == 1 && w.Item != t.work:
		// A second work item for a run that another item has brought to a worker: the
		// first item is delivered again if that worker dies, so this one is not needed.
		return false, nil
	}
	return t.conclude(ctx, t.attend(ctx))
}

// attend claims the run and works on it until it has ended, the claim is lost or
// ctx ends.
func (t *turn) attend(ctx context.Context) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.s.cfg.TurnTimeout, fault.New(fault.ModelTimeout))
	defer cancel()
	ctx, stop := t.watch(ctx)
	defer stop()
	for {
		err := t.step(ctx)
		if err == nil {
			continue
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, errEnded) {
			return cause
		}
		return err
	}
}

// conclude settles how the attempt ended: terminal event written, claim lost, run
// cancelled, failed, or interrupted and to be taken up again.
func (t *turn) conclude(ctx context.Context, err error) (ended bool, _ error) {
	switch {
	case errors.Is(err, errEnded):
		return true, nil
	case errors.Is(err, errFenced):
		return false, t.refused(ctx)
	case ctx.Err() != nil:
		return false, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case errors.Is(err, fault.New(fault.BusUnavailable)):
		return false, err
	}
	err = t.append(ctx, t.failure(t.s.asFault(err)))
	switch {
	case errors.Is(err, errFenced):
		return false, t.refused(ctx)
	case errors.Is(err, errEnded):
		return true, nil
	}
	return err == nil, err
}

// failure is the event that ends the unit: of a chat run the run's own end.
func (t *turn) failure(f *fault.Fault) event.Data {
	w := t.current()
	if w.Part.WorkID == "" {
		return event.RunFailedData{
			RunID: t.runID, ExecutionID: w.ExecutionID, Attempt: t.attempt,
			Code: string(f.Code), Message: f.Public(), Retryable: f.Retryable(),
		}
	}
	return event.TurnFailedData{
		RunID: t.runID, ExecutionID: w.ExecutionID, Attempt: t.attempt, Code: string(f.Code), Message: f.Public(),
		Retryable: f.Retryable(), ElapsedMS: t.s.cfg.Now().Sub(w.Started).Milliseconds(), Try: w.Try, MaxTries: w.MaxTries, Part: w.Part,
	}
}

// take claims the run with the next attempt number. A run whose attempts are
// used up is not claimed again: take returns the fault that ends it.
func (t *turn) take(ctx context.Context) error {
	before := t.current()
	base, claim := before.Attempt, t.unit+".turn."+t.s.cfg.NewID()
	if base >= t.s.cfg.MaxAttempts {
		t.attempt, t.claim = base, before.Claim // the end is written in the dead attempt's name
		return fault.New(fault.AttemptsOver)
	}
	t.claim, t.attempt = claim, base+1
	return t.writer.Append(ctx, func() ([]event.Event, error) {
		r := t.current()
		switch {
		case r.Ended || r.Failure != nil:
			return nil, errEnded
		case r.Claim == claim:
			return nil, nil
		case r.Attempt != base:
			return nil, errFenced
		}
		return t.events(unsent{claim, event.TurnStartedData{
			RunID: t.runID, ExecutionID: r.ExecutionID, Attempt: t.attempt,
			Worker: t.s.deps.Instance.String(), Work: t.work, Resumed: base > 0, MaxAttempts: t.s.cfg.MaxAttempts,
			Model: t.s.deps.Model.Name(), MaxTokens: t.s.cfg.MaxTokens, Part: r.Part,
		}})
	})
}

// refused records that this attempt came back too late, once.
func (t *turn) refused(ctx context.Context) error {
	eventID := t.claim + ".refused"
	err := t.writer.Append(ctx, func() ([]event.Event, error) {
		r := t.current()
		if r.Refused >= t.attempt {
			return nil, nil
		}
		return t.events(unsent{eventID, event.AttemptRefusedData{
			RunID: t.runID, Attempt: t.attempt, Current: r.Attempt,
			Worker: t.s.deps.Instance.String(), What: t.what, Part: r.Part,
		}})
	})
	if err != nil {
		return fmt.Errorf("record the refused attempt: %w", err)
	}
	return nil
}
