package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/signature"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// handle carries a command out: it folds the log, appends the decisions first and then
// sends the commands that follow, with ids that a repeat derives again. A command that
// fails discards the fold, so that its next delivery begins with the log.
func (s *Service[S, E]) handle(ctx context.Context, c cmd.Command, d command.Delivery) error {
	own, err := s.deps.Signatures.Check(c, d.Accepted, s.cfg.Now())
	if err != nil {
		s.refuse(c, err)
		s.auditFault(subject.Log{Tenant: c.Tenant, Kind: s.cfg.Kind, Entity: c.Key}, c, err)
		return permanent(err)
	}
	if s.cfg.Handle != nil {
		if taken, err := s.cfg.Handle(ctx, c); taken {
			return permanent(err)
		}
	}
	ref := subject.Log{Tenant: c.Tenant, Kind: s.cfg.Kind, Entity: c.Key}
	again, err := s.handleOn(ctx, ref, c, own)
	if !again {
		s.logs.Drop(ref)
	}
	return err
}

// handleOn handles a command that concerns a log, and reports whether the fold can be used again.
func (s *Service[S, E]) handleOn(ctx context.Context, ref subject.Log, c cmd.Command, own bool) (again bool, err error) {
	l := s.logs.Pin(ref)
	defer s.logs.Unpin(ref)
	err = s.apply(ctx, l, c, own)
	if err == nil && l.Deleted() || errors.Is(err, eventlog.ErrDeleted) {
		s.deps.Logger.Info().Stringer("log", ref).Str("command", c.ID).Stringer("verb", c.Verb).Msg("command dropped: log deleted")
		return false, nil
	}
	if err != nil {
		s.auditFault(ref, c, err)
		return false, permanent(err)
	}
	if c.Verb == s.cfg.Fired {
		l.armed = time.Time{} // the next due time has to be set again
	}
	l.Outbox.trim()
	if err := s.cfg.FollowUp(ctx, l, c); err != nil {
		return false, fmt.Errorf("%s %s: follow up %s: %w", s.cfg.Kind, c.Key, c.Verb, err)
	}
	l.Keep(ctx)
	return true, nil
}

// refuse tells the sender why the command is refused.
func (s *Service[S, E]) refuse(c cmd.Command, err error) {
	f := fault.From(err, "")
	s.Direct(subject.Log{Tenant: c.Tenant, Kind: s.cfg.Kind, Entity: c.Key}, c, event.CommandRefusedData{
		CommandID: c.ID, Code: string(f.Code), Message: f.Public(),
	})
}

// apply appends the facts of decisions about the command until a decision has none. It answers
// the sender after the first decision.
func (s *Service[S, E]) apply(ctx context.Context, l *Log[S], c cmd.Command, own bool) error {
	d, err := s.first(ctx, l, c, own)
	for round := 0; ; round++ {
		if err != nil {
			return fmt.Errorf("%s %s: handle %s: %w", s.cfg.Kind, c.Key, c.Verb, err)
		}
		s.auditFacts(l.Ref, c, d)
		if round == 0 {
			if no, ok := d.Direct.(event.CommandRefusedData); ok {
				s.auditRefusal(l.Ref, c, fault.Code(no.Code), no.InputID)
			}
			s.Direct(l.Ref, c, d.Direct)
			if err := s.sayAgain(ctx, l, c, d.Again); err != nil {
				return fmt.Errorf("%s %s: answer %s again: %w", s.cfg.Kind, c.Key, c.Verb, err)
			}
		}
		if len(d.Facts) == 0 {
			return nil
		}
		d, err = s.step(ctx, l, c, own, decidesAgain)
	}
}

// first appends the first decision. Where the log likely ends as this process knows it, the decision is tried without a read: if its
// facts could be appended, the log has ended there. A decision without facts, and an error of the decision, count only after a read.
func (s *Service[S, E]) first(ctx context.Context, l *Log[S], c cmd.Command, own bool) (decision.Decision, error) {
	if l.Recall() {
		d, err := s.step(ctx, l, c, own, decidesOnce)
		f, isFault := errors.AsType[*fault.Fault](err)
		if err == nil && len(d.Facts) > 0 || isFault && f.Code == fault.BusUnavailable {
			return d, err
		}
	}
	if err := l.Sync(ctx); err != nil {
		return decision.Decision{}, err
	}
	return s.step(ctx, l, c, own, decidesAgain)
}

// errElsewhere says that the log has ended elsewhere than this process knew.
var errElsewhere = errors.New("the log has more events")

// Whether a step decides again, with the environment that it has, when the log has more events.
const (
	decidesOnce  = false
	decidesAgain = true
)

// step gathers the environment and appends one decision.
func (s *Service[S, E]) step(ctx context.Context, l *Log[S], c cmd.Command, own, again bool) (d decision.Decision, err error) {
	var env E
	if s.cfg.Env != nil {
		if env, err = s.cfg.Env(ctx, l, c); err != nil {
			return d, err
		}
	}
	decided := false
	return l.Step(ctx, func(st *S) (decision.Decision, error) {
		if decided && !again {
			return decision.Decision{}, errElsewhere
		}
		decided = true
		if own && s.cfg.Own != nil && !s.cfg.Own(st, c) {
			return decision.Decision{}, signature.Foreign()
		}
		d, err := s.cfg.Decide(st, c, env)
		if err == nil && s.cfg.Decided != nil {
			s.cfg.Decided(l, d)
		}
		return d, err
	})
}

func (s *Service[S, E]) sayAgain(ctx context.Context, l *Log[S], c cmd.Command, events []uint64) error {
	if len(events) == 0 || s.cfg.Again == nil || c.ReplyTo == "" {
		return nil
	}
	return s.cfg.Again(ctx, l, c, events)
}

// permanent marks the errors that no repetition can repair.
func permanent(err error) error {
	f, ok := errors.AsType[*fault.Fault](err)
	if ok && !f.Retryable() {
		return command.Permanent(err)
	}
	return err
}

// NewService returns a service that is not started.
func NewService[S, E any](cfg ServiceConfig[S, E], deps Deps) (*Service[S, E], error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Service[S, E]{cfg: cfg, deps: deps, source: Source(cfg.Service)}
	var err error
	s.logs, err = NewLogs(Config[S]{Store: deps.Log, Source: s.source, Now: cfg.Now, Fold: cfg.Fold, Cached: cfg.Cached, Snapshots: cfg.Snapshots})
	if err != nil {
		return nil, fmt.Errorf("%s service: %w", cfg.Service, err)
	}
	s.ordered = command.NewOrdered(deps.Conn, deps.Directory, command.OrderedConfig{
		Service: cfg.Service, Instance: deps.Instance, Logger: deps.Logger, AckWait: cfg.AckWait,
		Registry: deps.Registry,
	}, s.handle)
	s.timers = command.NewTimers(deps.Conn, cfg.Service, deps.Logger, s.fired)
	return s, nil
}
