// Package session is the process manager of chat sessions: it accepts messages
// into a session's log, lets one run at a time have its turn, cancels, closes and
// expires. It decides with the pure reducer of package conversation and never
// does long work itself: runs go to the agent workers.
package session

import (
	"context"
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
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// DefaultTTL closes a session a day after its last event.
	DefaultTTL = 24 * time.Hour
	// cachedSessions bounds the folded states kept in memory. A state that was
	// dropped is folded again from the log.
	cachedSessions = 512
)

var expireTimer = id.MustName("expire")

// Config holds the settings of the service. Zero values mean the defaults.
type Config struct {
	TTL     time.Duration // how long a session outlives its last event; default DefaultTTL
	AckWait time.Duration // how long one command may be silent; default of command.OrderedConfig
	Now     func() time.Time
}

// Deps are what the service works with.
type Deps struct {
	Conn      *bus.Conn
	Log       *eventlog.Store
	Commands  *command.Sender
	Directory *directory.Directory
	Instance  id.Name
	Logger    zerolog.Logger
	Registry  prometheus.Registerer
}

// Service handles the commands of sessions. It is a lifecycle component; any
// number of replicas may run.
type Service struct {
	cfg     Config
	deps    Deps
	ordered *command.Ordered
	timers  *command.Timers
	cache   *lru.Cache[subject.Log, *held]
	seat    directory.Seat
}

// New returns a service that is not started.
func New(cfg Config, deps Deps) (*Service, error) {
	if cfg.TTL <= 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cache, err := lru.New[subject.Log, *held](cachedSessions)
	if err != nil {
		return nil, fmt.Errorf("session service: %w", err)
	}
	s := &Service{cfg: cfg, deps: deps, cache: cache}
	s.ordered = command.NewOrdered(deps.Conn, deps.Directory, command.OrderedConfig{
		Service: cmd.Session, Instance: deps.Instance, Logger: deps.Logger,
		AckWait: cfg.AckWait,
	}, s.handle)
	s.timers = command.NewTimers(deps.Conn, cmd.Session, deps.Logger, s.fired)
	return s, nil
}

// Name implements lifecycle.Component.
func (s *Service) Name() string { return "session" }

// Start joins the directory and begins to take commands.
func (s *Service) Start(ctx context.Context) error {
	err := s.seat.Take(ctx, s.deps.Directory, directory.Member{
		What: directory.WhatService, Name: cmd.Session, Instance: s.deps.Instance,
	})
	if err != nil {
		return fmt.Errorf("session service: join the directory: %w", err)
	}
	if err := errors.Join(s.ordered.Start(ctx), s.timers.Start(ctx)); err != nil {
		s.Stop() //nolint:contextcheck // ending takes a context of its own
		return fmt.Errorf("session service: %w", err)
	}
	return nil
}

// Drain hands the partitions over and finishes the commands that are on.
func (s *Service) Drain(ctx context.Context) error {
	return errors.Join(s.seat.Leave(ctx), s.timers.Drain(ctx), s.ordered.Drain(ctx))
}

// Stop ends at once; commands that are on are delivered again elsewhere.
func (s *Service) Stop() {
	s.timers.Stop()
	s.ordered.Stop()
	if err := s.seat.Quit(); err != nil {
		s.deps.Logger.Debug().Err(err).Msg("the directory was not told; the lease runs out by itself")
	}
}

// Failed implements lifecycle.Component.
func (s *Service) Failed() <-chan error { return s.ordered.Failed() }

// fired turns a due timer into a command, so that it takes its place in the
// session's order.
func (s *Service) fired(ctx context.Context, t subject.Timer) error {
	now := s.cfg.Now()
	return s.deps.Commands.Send(ctx, cmd.Command{
		ID: fmt.Sprintf("expire-%d", now.Unix()), Service: cmd.Session, Verb: cmd.Expire,
		Tenant: t.Tenant, Key: t.Key, Time: now,
	})
}
