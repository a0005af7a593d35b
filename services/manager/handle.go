package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/conversation"
)

// Held is a session's folded state with the writer that keeps it up to date. The
// ordered consumer handles one command of a session at a time, which is all the
// locking there is.
type Held struct {
	Log    subject.Log
	State  conversation.State
	Sent   map[string]bool // follow-ups that this process has sent; FollowUp keeps it
	writer *eventlog.Writer
	broken error     // the log holds an event that cannot be folded
	armed  time.Time // what the timer is set to, as far as this process knows
}

func (h *Held) observe(e *eventlog.Entry) {
	if err := h.State.Apply(e.Event); err != nil && h.broken == nil {
		h.broken = err
	}
}

// handle is a step of the process manager: load the state, append the events
// first, then send the follow-up commands, with ids that a repeat derives again.
func (m *Manager) handle(ctx context.Context, c cmd.Command, _ command.Delivery) error {
	if m.cfg.Handle != nil {
		if taken, err := m.cfg.Handle(ctx, c); taken {
			return permanent(err)
		}
	}
	h := m.hold(subject.Log{Tenant: c.Tenant, Kind: id.KindSession, Entity: c.Key})
	if err := m.apply(ctx, h, c); err != nil {
		m.cache.Remove(h.Log)
		return permanent(err)
	}
	if c.Verb == m.cfg.Fired {
		h.armed = time.Time{} // it has fired: whatever is due next has to be set again
	}
	if err := m.cfg.FollowUp(ctx, h, c); err != nil {
		m.cache.Remove(h.Log)
		return fmt.Errorf("session %s: follow up %s: %w", c.Key, c.Verb, err)
	}
	return nil
}

func (m *Manager) hold(log subject.Log) *Held {
	if h, ok := m.cache.Get(log); ok {
		return h
	}
	h := &Held{Log: log, Sent: map[string]bool{}}
	h.writer = m.deps.Log.Writer(log, h.observe)
	m.cache.Add(log, h)
	return h
}

// apply appends what the command calls for, until it calls for nothing more, and
// then says aside what only its sender needs to know.
func (m *Manager) apply(ctx context.Context, h *Held, c cmd.Command) error {
	if err := h.writer.Sync(ctx); err != nil {
		return fmt.Errorf("session %s: %w", c.Key, err)
	}
	for round := 0; ; round++ {
		var d conversation.Decision
		err := h.writer.Append(ctx, func() ([]event.Event, error) {
			if h.broken != nil {
				return nil, command.Permanent(h.broken)
			}
			var err error
			if d, err = h.State.Decide(c, m.cfg.Now(), m.cfg.Rules); err != nil {
				return nil, err
			}
			return m.events(ctx, h, d.Facts)
		})
		if err != nil {
			return fmt.Errorf("session %s: handle %s: %w", c.Key, c.Verb, err)
		}
		if round == 0 {
			m.aside(h.Log, c, d.Aside)
		}
		if len(d.Facts) == 0 {
			return nil
		}
	}
}

func (m *Manager) events(ctx context.Context, h *Held, facts []conversation.Fact) ([]event.Event, error) {
	events := make([]event.Event, 0, len(facts))
	for _, f := range facts {
		e, err := event.New(h.Log, f.ID, m.source, m.cfg.Now(), f.Data)
		if err != nil {
			return nil, err
		}
		e.TraceParent = telemetry.Inject(ctx)
		events = append(events, e)
	}
	return events, nil
}
