// Package manager is the runtime of process managers: services that handle the
// commands of one log in order, decide with a pure reducer of that log, append what
// was decided, and then send what it entails.
//
// Several services may manage the same log: every append is conditional, and what
// is decided is decided again when somebody else's event comes first.
package manager

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// cachedStates is the default of Config.Cached: sessions are large.
const cachedStates = 512

// timerPause is the least time to the next firing: where the clocks of NATS and of
// this process differ, a timer fires early and is set again, and that must not
// become a busy loop.
const timerPause = 100 * time.Millisecond

// Fact is an event to be: its data and an id that is the same however often the
// same command is handled.
type Fact struct {
	ID   string
	Data event.Data
}

// Decision is what a command calls for. Aside is an answer for whoever sent the
// command and nobody else; it may be nil. Request is what the first fact carries out
// (event.Event.Request). Again are the sequences of events of the log that answer a
// command whose sender repeats itself.
type Decision struct {
	Facts   []Fact
	Aside   event.Data
	Request string
	Again   []uint64
}

// Decided returns the decision of a reducer that has a type of its own for facts.
func Decided[F ~struct {
	ID   string
	Data event.Data
}](facts []F, aside event.Data) Decision {
	d := Decision{Aside: aside}
	for _, f := range facts {
		d.Facts = append(d.Facts, Fact(f))
	}
	return d
}

// Config says what a manager of logs with the state S is for. The zero S is the state
// of a log without events.
type Config[S any] struct {
	Service id.Name          // whose commands it handles
	Kind    id.Kind          // of the logs; a command's key is the log's entity
	Timer   id.Name          // of its one timer per log
	Cached  int              // folded states kept in memory; default 512. One that was dropped is folded again
	AckWait time.Duration    // how long one command may be silent; 0 = default of command.OrderedConfig
	Now     func() time.Time // nil = time.Now

	// Apply folds one event into the state.
	Apply func(*S, event.Event) error
	// Decide returns what the command still calls for in the state. It is asked again
	// after its facts were appended, until there are none, and appends nothing itself.
	Decide func(ctx context.Context, h *Held[S], c cmd.Command, now time.Time) (Decision, error)
	// Handle takes a command that is no matter of the log; nil if there are none. It
	// reports whether it took it.
	Handle func(ctx context.Context, c cmd.Command) (bool, error)
	// FollowUp sends what a handled command entails. It is called again when the
	// command is delivered again, so it derives ids from the state.
	FollowUp func(ctx context.Context, h *Held[S], c cmd.Command) error
	// Again tells the sender of a command once more what is in the log: nil if no Decision
	// asks for it.
	Again func(ctx context.Context, h *Held[S], c cmd.Command, events []uint64) error
	// Fired is the verb of the command that a due timer becomes.
	Fired id.Name
}

// Deps are what a manager works with.
type Deps struct {
	Conn      *bus.Conn
	Log       *eventlog.Store
	Commands  *command.Sender
	Directory *directory.Directory
	Instance  id.Name
	Logger    zerolog.Logger
	Registry  prometheus.Registerer // of the metrics about commands; nil: for nobody
}

// Manager handles the commands of logs of one kind. It is a lifecycle component; any number
// of replicas may run.
type Manager[S any] struct {
	cfg     Config[S]
	deps    Deps
	source  string
	ordered *command.Ordered
	timers  *command.Timers
	cache   *lru.Cache[subject.Log, *Held[S]]
	seat    directory.Seat
}

// New returns a manager that is not started.
func New[S any](cfg Config[S], deps Deps) (*Manager[S], error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Cached <= 0 {
		cfg.Cached = cachedStates
	}
	cache, err := lru.New[subject.Log, *Held[S]](cfg.Cached)
	if err != nil {
		return nil, fmt.Errorf("%s service: %w", cfg.Service, err)
	}
	m := &Manager[S]{cfg: cfg, deps: deps, cache: cache, source: "waggle/" + cfg.Service.String()}
	m.ordered = command.NewOrdered(deps.Conn, deps.Directory, command.OrderedConfig{
		Service: cfg.Service, Instance: deps.Instance, Logger: deps.Logger, AckWait: cfg.AckWait,
		Registry: deps.Registry,
	}, m.handle)
	m.timers = command.NewTimers(deps.Conn, cfg.Service, deps.Logger, m.fired)
	return m, nil
}

// Name implements lifecycle.Component.
func (m *Manager[S]) Name() string { return m.cfg.Service.String() }

// Start joins the directory and begins to take commands.
func (m *Manager[S]) Start(ctx context.Context) error {
	err := m.seat.Take(ctx, m.deps.Directory, directory.Member{
		What: directory.WhatService, Name: m.cfg.Service, Instance: m.deps.Instance,
	})
	if err != nil {
		return fmt.Errorf("%s service: join the directory: %w", m.cfg.Service, err)
	}
	if err := errors.Join(m.ordered.Start(ctx), m.timers.Start(ctx)); err != nil {
		m.Stop() //nolint:contextcheck // ending takes a context of its own
		return fmt.Errorf("%s service: %w", m.cfg.Service, err)
	}
	return nil
}

// Drain hands the partitions over and finishes the commands that are on.
func (m *Manager[S]) Drain(ctx context.Context) error {
	return errors.Join(m.seat.Leave(ctx), m.timers.Drain(ctx), m.ordered.Drain(ctx))
}

// Stop ends at once; commands that are on are delivered again elsewhere.
func (m *Manager[S]) Stop() {
	m.timers.Stop()
	m.ordered.Stop()
	if err := m.seat.Quit(); err != nil {
		m.deps.Logger.Debug().Err(err).Msg("the directory was not told; the lease runs out by itself")
	}
}

// Failed implements lifecycle.Component.
func (m *Manager[S]) Failed() <-chan error { return m.ordered.Failed() }

// fired turns a due timer into a command, so that it takes its place in the
// log's order.
func (m *Manager[S]) fired(ctx context.Context, t subject.Timer) error {
	now := m.cfg.Now()
	return m.Send(ctx, cmd.Command{
		ID: fmt.Sprintf("%s-%d", m.cfg.Fired, now.UnixMilli()), Service: m.cfg.Service, Verb: m.cfg.Fired, Tenant: t.Tenant, Key: t.Key,
	})
}

// Send sends a command in the service's name.
func (m *Manager[S]) Send(ctx context.Context, c cmd.Command) error {
	c.Source, c.TraceParent = m.source, telemetry.Inject(ctx)
	if c.Time.IsZero() {
		c.Time = m.cfg.Now()
	}
	return m.deps.Commands.Send(ctx, c)
}

// SetTimer sets the log's one timer of this service. Setting it to the moment
// that it is set to already does nothing.
func (m *Manager[S]) SetTimer(ctx context.Context, h *Held[S], due time.Time) error {
	if due.IsZero() || due.Equal(h.armed) {
		return nil
	}
	at := due
	if soon := m.cfg.Now().Add(timerPause); at.Before(soon) {
		at = soon
	}
	t := subject.Timer{Service: m.cfg.Service, Tenant: h.Log.Tenant, Key: h.Log.Entity, Name: m.cfg.Timer}
	if err := m.deps.Commands.SetTimer(ctx, t, at); err != nil {
		return err
	}
	h.armed = due
	return nil
}

// Aside tells the connection that sent the command, if it waits for something, and
// nobody else. It may get lost with the connection. Without data it does nothing.
func (m *Manager[S]) Aside(log subject.Log, c cmd.Command, data event.Data) {
	if data == nil || c.ReplyTo == "" {
		return
	}
	gateway, connection, err := subject.ParseReplyTo(c.ReplyTo)
	if err != nil {
		m.deps.Logger.Warn().Err(err).Msg("a command names no connection to answer to")
		return
	}
	e, err := event.New(log, cmp.Or(c.Request, c.ID)+".aside", m.source, m.cfg.Now(), data)
	if err != nil {
		m.deps.Logger.Error().Err(err).Msg("an aside cannot be encoded")
		return
	}
	raw, err := json.Marshal(e)
	if err == nil {
		err = m.deps.Conn.NATS().Publish(subject.Direct(gateway, connection), raw)
	}
	if err != nil {
		m.deps.Logger.Warn().Err(err).Msg("an aside could not be sent")
	}
}

// permanent marks the errors that no repetition can mend.
func permanent(err error) error {
	f, ok := errors.AsType[*fault.Fault](err)
	if ok && !f.Retryable() {
		return command.Permanent(err)
	}
	return err
}
