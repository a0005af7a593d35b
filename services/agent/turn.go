package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/command"
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

const source = "waggle/agent"

// Why an attempt ends early.
var (
	errEnded  = errors.New("the run has ended")
	errFenced = errors.New("another attempt holds the run")
	errPaused = errors.New("all that is left to do waits for people")
	// errSlow is in the fault of an attempt that has used up its time.
	errSlow = errors.New("the attempt takes too long")
)

// turn is one attempt at one unit of work. Everything in it belongs to one goroutine.
type turn struct {
	s       *Service
	log     *ledger.Log[conversation.State]
	caller  tools.Caller // the tools of the one that is worked for
	runID   string
	unit    string // the unit of work: the run itself in a chat run
	tenant  id.Tenant
	job     conversation.Work   // the unit as it was begun: what does not change of it
	state   *conversation.State // of the log
	shadow  *conversation.State // the same again, for the sentinel; nil once that has it
	attempt int
	claim   string // id of our job.started event: the fence
	what    event.Type
	trace   string
	item    cmd.Command // the work item
	work    string      // names the work item: the same at every delivery of it, different for a second one

	day      day
	denied   *quota.Over   // a tool call was not begun
	answered chan struct{} // holds one when people have answered a question
}

func (s *Service) newTurn(c cmd.Command, ref cmd.JobRef) *turn {
	t := &turn{
		s: s, item: c, caller: s.deps.Tools, answered: make(chan struct{}, 1), shadow: &conversation.State{}, runID: ref.RunID, unit: ref.Job(), tenant: c.Tenant, trace: c.TraceParent, work: c.Time.UTC().Format(time.RFC3339Nano),
	}
	t.log = ledger.Open(
		ledger.Config[conversation.State]{Store: s.deps.Log, Source: source, Now: s.cfg.Now, Fold: t.fold},
		subject.Log{Tenant: c.Tenant, Kind: ref.LogKind(), Entity: c.Key},
	)
	t.state = t.log.State()
	return t
}

func (t *turn) fold(s *conversation.State, e event.Event) error {
	if t.shadow != nil {
		_ = t.shadow.Apply(e) // an event that cannot be folded breaks the log
	}
	return s.Apply(e)
}

// run does what is left of the unit. ended says that it needs no worker any more; an
// error asks for another delivery.
func (t *turn) run(ctx context.Context) (ended bool, err error) {
	ctx = telemetry.Extract(ctx, t.trace)
	ctx, span := telemetry.Start(ctx, "invoke_agent", trace.SpanKindInternal)
	defer func() { telemetry.End(span, err) }()
	t.trace = telemetry.Inject(ctx)

	if err := t.log.Sync(ctx); err != nil {
		return false, err
	}
	if t.state.Deleted {
		t.s.deps.Logger.Info().Stringer("log", t.log.Ref).Str("unit", t.unit).Msg("settle work of deleted session")
		return false, nil
	}
	w := t.current()
	if w == nil {
		return false, command.Permanent(fmt.Errorf("%s is not in the log", t.unit))
	}
	t.job = *w
	switch {
	case over(w):
		return true, nil
	case w.Paused && t.state.Next(t.unit).Kind == conversation.StepWait:
		return false, nil // whoever answers has it taken up again
	case w.Attempt > 0 && w.Item != t.work && !w.Paused:
		// Another work item has brought the unit to a worker, and is delivered again if
		// that one dies: this one, a second or an older one, is not needed.
		return false, nil
	}
	if passed, err := t.passOn(ctx); passed || err != nil {
		return false, err
	}
	if err := t.equip(); err != nil {
		return false, command.Permanent(err)
	}
	return t.conclude(ctx, t.attend(ctx))
}

// attend claims the unit and works on it until it has ended or waits for people, the
// claim is lost or ctx ends.
func (t *turn) attend(ctx context.Context) error {
	if err := t.take(ctx); err != nil {
		return err
	}
	allowed, why := t.timeLimit()
	ctx, cancel := context.WithTimeoutCause(ctx, allowed, why)
	defer cancel()
	ctx, stop := t.watch(ctx)
	defer stop()
	err := t.clockIn(ctx)
	defer t.clockOut()                                                   //nolint:contextcheck // what was used is settled also when the unit has ended
	if _, over := errors.AsType[*quota.Over](err); err != nil && !over { // a step that takes time finds that out
		return err
	}
	for {
		err := t.step(ctx)
		if err == nil {
			continue
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, errEnded) && !errors.Is(err, errPaused) {
			return cause
		}
		return err
	}
}

// conclude settles how the attempt ended: the unit's last word written, put down, claim
// lost, unit ended by somebody else, failed, or interrupted and to be taken up again.
func (t *turn) conclude(ctx context.Context, err error) (ended bool, _ error) {
	switch {
	case errors.Is(err, errEnded):
		return true, nil
	case errors.Is(err, errPaused):
		return false, nil
	case errors.Is(err, errFenced):
		return false, t.refused(ctx)
	case ctx.Err() != nil:
		return false, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	case errors.Is(err, fault.New(fault.BusUnavailable)):
		return false, err
	}
	err = t.append(ctx, t.failed(err)...)
	switch {
	case errors.Is(err, errFenced):
		return false, t.refused(ctx)
	case errors.Is(err, errEnded):
		return true, nil
	}
	return err == nil, err
}

// failed are the events that end the unit. What a chat run has half said ends first; with
// what other units leave the pipeline does.
func (t *turn) failed(err error) []event.Data {
	end := t.failure(err)
	if w := t.current(); w != nil && t.job.Part.JobID == "" {
		return append(t.discards("the work failed", w.Open...), end)
	}
	return []event.Data{end}
}

// failure is the event that ends the unit: of a chat run the run's own end.
func (t *turn) failure(err error) event.Data {
	w, f, said := &t.job, t.s.asFault(err), t.provider(err)
	if w.Part.JobID == "" {
		return event.RunFailedData{
			RunID: t.runID, ExecutionID: w.ExecutionID, Attempt: t.attempt,
			Code: string(f.Code), Message: f.Public(), Retryable: f.Retryable(), Budget: t.budgetUse(f), Provider: said,
		}
	}
	var allowed time.Duration
	if errors.Is(err, errSlow) {
		allowed = t.s.cfg.TurnTimeout
	}
	return event.JobFailedData{
		RunID: t.runID, ExecutionID: w.ExecutionID, Attempt: t.attempt, Code: string(f.Code), Message: f.Public(),
		Retryable: f.Retryable(), TimeoutSeconds: int(math.Ceil(allowed.Seconds())), ElapsedMS: t.s.cfg.Now().Sub(w.Started).Milliseconds(), Try: w.Try, MaxTries: w.MaxTries, Provider: said, Part: w.Part,
	}
}

// take claims the unit with the next attempt number. One whose attempts are
// used up is not claimed again: take returns the fault that ends it.
func (t *turn) take(ctx context.Context) error {
	before := t.current()
	base, claim := before.Attempt, t.unit+".turn."+t.s.cfg.NewID()
	if before.Spent() >= t.s.cfg.MaxAttempts {
		t.attempt, t.claim = base, before.Claim // the end is written in the dead attempt's name
		return fault.New(fault.AttemptsOver)
	}
	t.claim, t.attempt = claim, base+1
	return t.log.Append(ctx, func(*conversation.State) ([]event.Event, error) {
		w := t.current()
		switch {
		case over(w):
			return nil, errEnded
		case w.Claim == claim:
			return nil, nil
		case w.Attempt != base:
			return nil, errFenced
		}
		return t.events([]string{claim}, event.JobStartedData{
			RunID: t.runID, ExecutionID: t.job.ExecutionID, Attempt: t.attempt,
			Worker: t.s.deps.Instance.String(), CommandID: t.work, Resumed: base > 0, MaxAttempts: t.s.cfg.MaxAttempts,
			Model: t.model(), MaxTokens: t.s.cfg.MaxTokens, Part: t.job.Part,
		})
	})
}

// refused records that this attempt came back too late, once.
func (t *turn) refused(ctx context.Context) error {
	eventID := t.claim + ".refused"
	err := t.log.Append(ctx, func(*conversation.State) ([]event.Event, error) {
		w := t.current()
		if w == nil || w.Refused >= t.attempt {
			return nil, nil
		}
		return t.events([]string{eventID}, event.AttemptRefusedData{
			RunID: t.runID, Attempt: t.attempt, Current: w.Attempt,
			Worker: t.s.deps.Instance.String(), What: t.what, Part: t.job.Part,
		})
	})
	if err != nil {
		return fmt.Errorf("record the refused attempt: %w", err)
	}
	return nil
}
