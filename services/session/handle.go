package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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

const source = "waggle/session"

// held is a session's folded state with the writer that keeps it up to date.
// The ordered consumer handles one command of a session at a time, which is all
// the locking there is.
type held struct {
	log    subject.Log
	state  conversation.State
	writer *eventlog.Writer
	broken error // the log holds an event that cannot be folded
}

func (h *held) observe(e *eventlog.Entry) {
	if err := h.state.Apply(e.Event); err != nil && h.broken == nil {
		h.broken = err
	}
}

// handle is a step of the process manager: load the state, append the events
// first, then send the follow-up commands, with ids that a repeat derives again.
func (s *Service) handle(ctx context.Context, c cmd.Command, _ command.Delivery) error {
	h := s.hold(subject.Log{Tenant: c.Tenant, Kind: id.KindSession, Entity: c.Key})
	if err := s.apply(ctx, h, c); err != nil {
		s.cache.Remove(h.log)
		return permanent(err)
	}
	if err := s.followUp(ctx, h, c); err != nil {
		return fmt.Errorf("session %s: follow up %s: %w", c.Key, c.Verb, err)
	}
	return nil
}

func (s *Service) hold(log subject.Log) *held {
	if h, ok := s.cache.Get(log); ok {
		return h
	}
	h := &held{log: log}
	h.writer = s.deps.Log.Writer(log, h.observe)
	s.cache.Add(log, h)
	return h
}

// apply appends what the command calls for, until it calls for nothing more.
func (s *Service) apply(ctx context.Context, h *held, c cmd.Command) error {
	if err := h.writer.Sync(ctx); err != nil {
		return fmt.Errorf("session %s: %w", c.Key, err)
	}
	for {
		appended := 0
		err := h.writer.Append(ctx, func() ([]event.Event, error) {
			if h.broken != nil {
				return nil, command.Permanent(h.broken)
			}
			events, err := s.decide(ctx, h, c)
			appended = len(events)
			return events, err
		})
		if err != nil {
			return fmt.Errorf("session %s: handle %s: %w", c.Key, c.Verb, err)
		}
		if appended == 0 {
			return nil
		}
	}
}

func (s *Service) decide(ctx context.Context, h *held, c cmd.Command) ([]event.Event, error) {
	now := s.cfg.Now()
	facts, err := h.state.Decide(c, now, s.cfg.TTL)
	if err != nil {
		return nil, err
	}
	events := make([]event.Event, 0, len(facts))
	for _, f := range facts {
		e, err := event.New(h.log, f.ID, source, now, f.Data)
		if err != nil {
			return nil, err
		}
		e.TraceParent = telemetry.Inject(ctx)
		events = append(events, e)
	}
	return events, nil
}

// followUp sends what the handled command entails: the work item of the run that
// it started, and the timer that ends an idle session.
func (s *Service) followUp(ctx context.Context, h *held, c cmd.Command) error {
	if r := h.state.Active(); r != nil && strings.HasPrefix(r.StartedBy, c.ID+".started.") {
		if err := s.dispatch(ctx, h.log, r.ID); err != nil {
			return err
		}
	}
	if (c.Verb == cmd.Open || c.Verb == cmd.Expire) && !h.state.Closed {
		return s.armExpiry(ctx, h)
	}
	return nil
}

func (s *Service) dispatch(ctx context.Context, log subject.Log, runID string) error {
	data := fmt.Appendf(nil, `{"run_id":%q}`, runID)
	return s.deps.Commands.Send(ctx, cmd.Command{
		ID: runID, Service: cmd.Agent, Verb: cmd.Run, Tenant: log.Tenant, Key: log.Entity,
		Source: source, Time: s.cfg.Now(), Data: data, TraceParent: telemetry.Inject(ctx),
	})
}

// armExpiry sets the session's one timer to the moment at which it will have been
// idle for the TTL. When it fires too early, because the session has been used
// since, it is armed again from there.
func (s *Service) armExpiry(ctx context.Context, h *held) error {
	due := h.state.Updated.Add(s.cfg.TTL)
	if now := s.cfg.Now(); due.Before(now) {
		due = now.Add(time.Minute) // a run is on: look again soon
	}
	t := subject.Timer{Service: cmd.Session, Tenant: h.log.Tenant, Key: h.log.Entity, Name: expireTimer}
	return s.deps.Commands.SetTimer(ctx, t, due)
}

// permanent marks the errors that no repetition can mend.
func permanent(err error) error {
	f, ok := errors.AsType[*fault.Fault](err)
	if ok && !f.Retryable() {
		return command.Permanent(err)
	}
	return err
}
