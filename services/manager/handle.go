package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Held is the folded state of one log with the writer that keeps it up to date. The
// ordered consumer handles one command of a log at a time, which is all the locking
// there is.
type Held[S any] struct {
	Log    subject.Log
	State  S
	Sent   map[string]bool // follow-ups that this process has sent; FollowUp keeps it
	writer *eventlog.Writer
	broken error     // the log holds an event that cannot be folded
	armed  time.Time // what the timer is set to, as far as this process knows
}

// Seq returns the sequence of the last event that State has seen.
func (h *Held[S]) Seq() uint64 { return h.writer.Seq() }

// handle is a step of the process manager: load the state, append the events
// first, then send the follow-up commands, with ids that a repeat derives again.
func (m *Manager[S]) handle(ctx context.Context, c cmd.Command, _ command.Delivery) error {
	if m.cfg.Handle != nil {
		if taken, err := m.cfg.Handle(ctx, c); taken {
			return permanent(err)
		}
	}
	h := m.hold(subject.Log{Tenant: c.Tenant, Kind: m.cfg.Kind, Entity: c.Key})
	err := m.apply(ctx, h, c)
	if err == nil && h.writer.Deleted() || errors.Is(err, eventlog.ErrDeleted) {
		m.cache.Remove(h.Log)
		m.deps.Logger.Info().Stringer("log", h.Log).Str("command", c.ID).Stringer("verb", c.Verb).Msg("settle command for deleted log")
		return nil
	}
	if err != nil {
		m.cache.Remove(h.Log)
		return permanent(err)
	}
	if c.Verb == m.cfg.Fired {
		h.armed = time.Time{} // it has fired: whatever is due next has to be set again
	}
	if err := m.cfg.FollowUp(ctx, h, c); err != nil {
		m.cache.Remove(h.Log)
		return fmt.Errorf("%s %s: follow up %s: %w", m.cfg.Kind, c.Key, c.Verb, err)
	}
	return nil
}

func (m *Manager[S]) hold(log subject.Log) *Held[S] {
	if h, ok := m.cache.Get(log); ok {
		return h
	}
	h := &Held[S]{Log: log, Sent: map[string]bool{}}
	h.writer = m.deps.Log.Writer(log, func(e *eventlog.Entry) {
		if err := m.cfg.Apply(&h.State, e.Event); err != nil && h.broken == nil {
			h.broken = err
		}
	})
	m.cache.Add(log, h)
	return h
}

// apply appends what the command calls for, until it calls for nothing more, and
// then says aside what only its sender needs to know.
func (m *Manager[S]) apply(ctx context.Context, h *Held[S], c cmd.Command) error {
	if err := h.writer.Sync(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", m.cfg.Kind, c.Key, err)
	}
	for round := 0; ; round++ {
		var d Decision
		err := h.writer.Append(ctx, func() ([]event.Event, error) {
			if h.broken != nil && !h.writer.Deleted() {
				return nil, command.Permanent(h.broken)
			}
			var err error
			if d, err = m.cfg.Decide(ctx, h, c, m.cfg.Now()); err != nil {
				return nil, err
			}
			return m.events(ctx, h, d)
		})
		if err != nil {
			return fmt.Errorf("%s %s: handle %s: %w", m.cfg.Kind, c.Key, c.Verb, err)
		}
		if round == 0 {
			m.Aside(h.Log, c, d.Aside)
			if err := m.sayAgain(ctx, h, c, d.Again); err != nil {
				return fmt.Errorf("%s %s: answer %s again: %w", m.cfg.Kind, c.Key, c.Verb, err)
			}
		}
		if len(d.Facts) == 0 {
			return nil
		}
	}
}

func (m *Manager[S]) sayAgain(ctx context.Context, h *Held[S], c cmd.Command, events []uint64) error {
	if len(events) == 0 || m.cfg.Again == nil || c.ReplyTo == "" {
		return nil
	}
	return m.cfg.Again(ctx, h, c, events)
}

func (m *Manager[S]) events(ctx context.Context, h *Held[S], d Decision) ([]event.Event, error) {
	events := make([]event.Event, 0, len(d.Facts))
	for i, f := range d.Facts {
		e, err := event.New(h.Log, f.ID, m.source, m.cfg.Now(), f.Data)
		if err != nil {
			return nil, err
		}
		e.TraceParent = telemetry.Inject(ctx)
		if i == 0 {
			e.Request = d.Request
		}
		events = append(events, e)
	}
	return events, nil
}
