package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/command"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/signature"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger/decision"
)

// ServiceConfig configures a service of logs with the state S, whose decisions depend on an
// environment E. Zero values mean the defaults.
type ServiceConfig[S, E any] struct {
	Service id.Name          // whose commands it handles
	Kind    id.Kind          // of the logs; a command's key is the log's entity
	Timer   id.Name          // of its one timer per log
	Fired   id.Name          // verb of the command that a due timer becomes
	Cached  int              // folds kept in memory besides those at rest; default 64 with snapshots, 512 without
	AckWait time.Duration    // how long one command may be silent; 0 = default of command.OrderedConfig
	Now     func() time.Time // the bus' clock; nil = time.Now

	// Snapshots are used, and stored after commands if they are Lazy. The service opens them. nil: logs are read from their beginning.
	Snapshots *Snapshots[S]
	// Fold folds the next event into the state.
	Fold func(*S, event.Event) error
	// Own reports whether a service may send the command to the log in its own name: nothing that the command concerns
	// belongs to a person. It is asked only for commands that people send, too. nil: it may.
	Own func(*S, cmd.Command) bool
	// Env gathers the live values that the decision about a command depends on: the time,
	// candidates, quotas. It runs before each append, with the log read to its end. It runs once more if that was only the
	// end that this process knew, and another service has appended since. Its error ends the command. nil: the zero E.
	Env func(ctx context.Context, l *Log[S], c cmd.Command) (E, error)
	// Decide returns the facts and answers that the command still calls for. It is pure. The ledger
	// calls it again with the same E if another event took the seq, and with a new E after an
	// append, until it returns no facts.
	Decide func(*S, cmd.Command, E) (decision.Decision, error)
	// Decided is called with each decision before its append, also if the append does not happen in
	// the end. nil: not called.
	Decided func(l *Log[S], d decision.Decision)
	// Handle handles a command that does not concern the log of its key, and reports whether it
	// did. nil: the service has no such commands.
	Handle func(ctx context.Context, c cmd.Command) (bool, error)
	// FollowUp sends the commands that follow from the log. It is called again when the
	// command is delivered again, and derives the same commands from the state.
	FollowUp func(ctx context.Context, l *Log[S], c cmd.Command) error
	// Again repeats events of the log to the sender of a command. nil = no decision requests it.
	Again func(ctx context.Context, l *Log[S], c cmd.Command, events []uint64) error
}

// Deps are the parts that a service works with.
type Deps struct {
	Conn      *bus.Conn
	Log       *eventlog.Store
	Commands  *command.Sender
	Directory *directory.Directory
	Instance  id.Name
	Logger    zerolog.Logger
	Registry  prometheus.Registerer // of the metrics about commands; nil: none

	Audit *audit.Writer // of what came of commands of people; nil: it is not recorded

	// Signatures verifies the commands of people; nil: all of these are refused.
	Signatures *signature.Verifier
}

// Service handles the commands of logs of one kind, those of one log one after the other.
// It is a lifecycle component; any number of replicas may run.
type Service[S, E any] struct {
	cfg     ServiceConfig[S, E]
	deps    Deps
	source  string
	ordered *command.Ordered
	timers  *command.Timers
	logs    *Logs[S]
	seat    directory.Seat
}

// Source returns the source of a service's events and commands.
func Source(service id.Name) string { return "waggle/" + service.String() }

// Name implements lifecycle.Component.
func (s *Service[S, E]) Name() string { return s.cfg.Service.String() }

// Start joins the directory and begins to take commands.
func (s *Service[S, E]) Start(ctx context.Context) error {
	if s.cfg.Snapshots != nil {
		if err := s.cfg.Snapshots.Open(ctx, s.deps.Conn); err != nil {
			return fmt.Errorf("%s service: %w", s.cfg.Service, err)
		}
	}
	err := s.seat.Take(ctx, s.deps.Directory, directory.Member{
		What: directory.WhatService, Name: s.cfg.Service, Instance: s.deps.Instance,
	})
	if err != nil {
		return fmt.Errorf("%s service: join the directory: %w", s.cfg.Service, err)
	}
	if err := errors.Join(s.ordered.Start(ctx), s.timers.Start(ctx)); err != nil {
		s.Stop() //nolint:contextcheck // ending takes a context of its own
		return fmt.Errorf("%s service: %w", s.cfg.Service, err)
	}
	return nil
}

// Drain hands the partitions over and finishes the commands in progress.
func (s *Service[S, E]) Drain(ctx context.Context) error {
	return errors.Join(s.seat.Leave(ctx), s.timers.Drain(ctx), s.ordered.Drain(ctx))
}

// Stop ends at once; commands in progress are delivered again elsewhere.
func (s *Service[S, E]) Stop() {
	s.timers.Stop()
	s.ordered.Stop()
	if err := s.seat.Quit(); err != nil {
		s.deps.Logger.Debug().Err(err).Msg("directory entry left to expire")
	}
}

// Failed implements lifecycle.Component.
func (s *Service[S, E]) Failed() <-chan error { return s.ordered.Failed() }
