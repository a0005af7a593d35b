// Package session is the service of a session's life. It opens, closes, expires and deletes
// sessions, stores acknowledgements, finds the position from which a client resumes, and exports
// and imports sessions. It does not change runs: package pipeline does.
//
// An exported session keeps its id, so that its clients can resume where it is imported. The export holds no job in
// progress: such a job starts anew, and the import names tool calls with an unknown outcome. An id that has a tombstone is
// refused.
package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/audit"
	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/rpc"
	record "github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/acks"
	"github.com/waggle-dev/waggle/services/conversation"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/session/seal"
	"github.com/waggle-dev/waggle/services/snapshots"
)

// DefaultTTL closes a session a day after its last event.
const DefaultTTL = 24 * time.Hour

// Config holds the settings of the service. Zero values mean the defaults.
type Config struct {
	TTL     time.Duration // how long a session outlives its last event; default DefaultTTL
	AckWait time.Duration // how long one command may be silent; default of command.OrderedConfig
	Now     func() time.Time

	// StateKeys sign exported states and verify imported ones; the first one signs. Without a key
	// states are exported unsigned, and imports are refused.
	StateKeys [][]byte
	Registry  prometheus.Registerer // of the metrics about requests; nil: none

	Audit *audit.Writer // of deletions; nil: they are not recorded

	Access access.Policy // to sessions

	Quota quota.Config // of open sessions; without a policy unlimited

	IndexEvery time.Duration // between two writes of one summary in the index; 0: its default
}

// Service handles the commands of sessions. It is a lifecycle component; any
// number of replicas may run.
type Service struct {
	*ledger.Service[conversation.State, env]
	cfg       Config
	conn      *bus.Conn
	responder *responder
	rpc       *rpc.Server
	follower  *index.Follower
}

// New returns a service that is not started.
func New(cfg Config, deps ledger.Deps) (*Service, error) {
	if cfg.TTL <= 0 {
		cfg.TTL = DefaultTTL
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	keys := seal.Keys(cfg.StateKeys)
	if err := keys.Check(); err != nil {
		return nil, fmt.Errorf("session service: %w", err)
	}
	x := index.New(deps.Conn, deps.Log)
	s := &Service{cfg: cfg, conn: deps.Conn, follower: ledger.Follower(deps, cmd.Session, index.Config{Index: x, Kind: id.KindSession, Every: cfg.IndexEvery})}
	s.responder = &responder{conn: deps.Conn, access: cfg.Access, audit: cfg.Audit, payloads: payload.New(deps.Conn), log: deps.Log, commands: deps.Commands, keys: keys, ttl: cfg.TTL, now: cfg.Now, logger: deps.Logger, signatures: deps.Signatures, index: x}
	s.rpc = rpc.NewServer(deps.Conn, rpc.Config{
		Service: cmd.Session, Description: "Says where clients of sessions stand, and takes states elsewhere and back",
		Logger: deps.Logger, Registry: cfg.Registry,
	})
	s.responder.offer(s.rpc)
	rpc.Handle(s.rpc, cmd.Reindex, s.follower.Reindex)
	s.responder.snapshots = snapshots.New(deps.Logger)
	var err error
	s.Service, err = ledger.NewService(ledger.ServiceConfig[conversation.State, env]{
		Service: cmd.Session, Kind: id.KindSession, Timer: expireTimer, Fired: cmd.Expire, AckWait: cfg.AckWait, Now: cfg.Now,
		Fold: (*conversation.State).Apply, Env: s.env, Decide: decide, Handle: s.handle, FollowUp: s.followUp, Own: (*conversation.State).Unowned,
		Snapshots: s.responder.snapshots,
	}, deps)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Start opens the bucket of positions, begins to take commands, and then to answer
// requests.
func (s *Service) Start(ctx context.Context) error {
	a, err := acks.Open(ctx, s.conn)
	if err != nil {
		return fmt.Errorf("session service: %w", err)
	}
	s.responder.acks = a
	if err := s.openQuota(ctx); err != nil {
		return err
	}
	if err := s.Service.Start(ctx); err != nil {
		return err
	}
	if err := s.rpc.Start(ctx); err != nil {
		s.Stop() //nolint:contextcheck // ending takes a context of its own
		return fmt.Errorf("session service: %w", err)
	}
	s.follower.Start(ctx)
	return nil
}

// Drain answers open requests and finishes commands in progress.
func (s *Service) Drain(ctx context.Context) error {
	err := errors.Join(s.rpc.Drain(ctx), s.Service.Drain(ctx))
	s.follower.Stop()
	s.closeQuota()
	return err
}

// Stop ends at once. Callers are told to ask again, and the bus delivers commands in progress to
// another replica.
func (s *Service) Stop() {
	s.rpc.Stop()
	s.Service.Stop()
	s.follower.Stop()
	s.closeQuota()
}

// handle handles the commands that do not change the state of a session.
func (s *Service) handle(ctx context.Context, c cmd.Command) (bool, error) {
	switch c.Verb {
	case cmd.Ack:
		return true, s.responder.acknowledge(ctx, c)
	case cmd.Delete:
		return true, s.responder.delete(ctx, c)
	case cmd.EraseTask:
		return true, s.responder.eraseTask(ctx, c)
	}
	return false, nil
}

// followUp arms the timer that ends an idle session.
func (s *Service) followUp(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command) error {
	if (c.Verb == cmd.Open || c.Verb == cmd.Expire) && !l.State().Closed {
		return s.armExpiry(ctx, l)
	}
	if l.State().Closed {
		return s.responder.quota.Free(ctx, l.Ref.Tenant, l.Ref.Entity)
	}
	return nil
}

// armExpiry sets the session's one timer to the moment at which it will have been
// idle for the TTL. When it fires too early, because the session has been used
// since, it is armed again from there.
func (s *Service) armExpiry(ctx context.Context, l *ledger.Log[conversation.State]) error {
	due := l.State().Updated.Add(s.cfg.TTL)
	if now := s.cfg.Now(); due.Before(now) {
		due = now.Add(time.Minute) // a run is active: check again soon
	}
	return s.SetTimer(ctx, l, due)
}

func (s *Service) openQuota(ctx context.Context) error {
	cfg := s.cfg.Quota
	cfg.Conn, cfg.Over = s.conn, s.responder.over
	if err := s.responder.quota.Open(ctx, record.Sessions, cfg); err != nil {
		return fmt.Errorf("session service: %w", err)
	}
	return nil
}

func (s *Service) closeQuota() { s.responder.quota.Close() }

// env takes a place of the quota before a session begins.
func (s *Service) env(ctx context.Context, l *ledger.Log[conversation.State], c cmd.Command) (env, error) {
	e := env{now: s.cfg.Now(), rules: conversation.Rules{TTL: s.cfg.TTL, Access: s.cfg.Access}}
	if c.Verb != cmd.Open || !l.State().Created.IsZero() {
		return e, nil
	}
	err := s.responder.quota.Hold(ctx, l.Ref.Tenant, c.Principal, l.Ref.Entity)
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.QuotaExceeded {
		e.refused = f
		return e, nil
	}
	return e, err
}
