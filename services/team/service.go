// Package team is the service of teams. It handles the commands to teams, starts their members,
// delivers messages to them, and relays the events of their logs into the team's log: once, in
// order and byte for byte, to any depth of nested teams. The pure reducer of package teamwork
// decides. Members' runs belong to package pipeline.
//
// All commands to members are derived from the team's log, by the handler of a team's command and
// by the relay. Any replica may run either at any time: appends are conditional and ids follow from
// the log, so that a repetition does no harm.
//
// The fold of a long log has a snapshot every 2,000 events. Only active teams are relayed: an entry in the registry
// precedes the first append to a team that rests, and goes when the team has had nothing to do for a minute. A resting team
// costs storage only.
package team

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/access"
	"github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/teamwork"
)

// defaultRest is the time after which the relay of an idle team ends. It has to be longer than an
// append in progress may take (20 s).
const defaultRest = time.Minute

// source is the service in the events that it appends.
const source = "waggle/team"

var dueTimer = id.MustName("due")

// Config holds the settings of the service. Zero values mean the defaults.
type Config struct {
	Teams   []event.TeamDefinition // definitions that clients create teams from by name
	Rest    time.Duration          // idle time after which a team's relay ends; default 1 min
	AckWait time.Duration          // how long one command may be silent
	Now     func() time.Time       // nil = time.Now
	NewID   func() string          // of teams; nil: team_ and 16 random hex digits

	Registry prometheus.Registerer // of the metrics; nil: none

	Access access.Policy // to teams and models

	Quota quota.Config // of open teams, nested ones not counted; without a policy unlimited

	IndexEvery time.Duration // between two writes of one summary in the index; 0: its default
}

// Service handles the commands of teams and relays the events of their members. It is a
// lifecycle component; any number of replicas may run.
type Service struct {
	*ledger.Service[struct{}, struct{}]
	cfg       Config
	deps      ledger.Deps
	named     map[string]event.TeamDefinition
	logs      *ledger.Logs[teamwork.State]
	snapshots *ledger.Snapshots[teamwork.State]
	registry  *registry
	owners    *owners
	pulse     *pulse
	rpc       *rpc.Server
	metrics   *metrics
	quota     quota.Entities
	follower  *index.Follower // of the questions of members
}

// New returns a service that is not started, or an error that names the invalid definition.
func New(cfg Config, deps ledger.Deps) (*Service, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.NewID == nil {
		cfg.NewID = newID
	}
	if cfg.Rest <= 0 {
		cfg.Rest = defaultRest
	}
	s := &Service{cfg: cfg, deps: deps, named: map[string]event.TeamDefinition{}}
	s.follower = ledger.Follower(deps, cmd.Team, index.Config{Kind: id.KindMember, Every: cfg.IndexEvery, Fades: true})
	for _, d := range cfg.Teams {
		if err := teamwork.Check(d); err != nil {
			return nil, fmt.Errorf("team service: the team %q: %w", d.Name, err)
		}
		if _, double := s.named[d.Name]; double {
			return nil, fmt.Errorf("team service: two teams have the name %q", d.Name)
		}
		s.named[d.Name] = d
	}
	var err error
	s.snapshots = snapshots(deps.Logger)
	s.logs, err = ledger.NewLogs(ledger.Config[teamwork.State]{
		Store: deps.Log, Source: source, Now: cfg.Now, Fold: (*teamwork.State).Apply, Snapshots: s.snapshots,
	})
	if err != nil {
		return nil, fmt.Errorf("team service: %w", err)
	}
	if s.metrics, err = newMetrics(cfg.Registry); err != nil {
		return nil, fmt.Errorf("team service: %w", err)
	}
	s.owners = newOwners(s)
	s.pulse = newPulse(s)
	s.registry = newRegistry(deps.Logger, s.owners.wake)
	s.Service, err = ledger.NewService(ledger.ServiceConfig[struct{}, struct{}]{
		Service: cmd.Team, Kind: id.KindTeam, Timer: dueTimer, AckWait: cfg.AckWait, Now: cfg.Now, Fired: cmd.CheckTeam,
		Handle: func(ctx context.Context, c cmd.Command) (bool, error) { return true, s.handle(ctx, c) },
	}, deps)
	if err != nil {
		return nil, err
	}
	s.rpc = rpc.NewServer(deps.Conn, rpc.Config{
		Service: cmd.Team, Description: "Founds teams of agents and knows what they are doing", Logger: deps.Logger, Registry: cfg.Registry,
	})
	s.offer(s.rpc)
	return s, nil
}

// snapshots returns the snapshots of teams. A team that was never created has none.
func snapshots(logger zerolog.Logger) *ledger.Snapshots[teamwork.State] {
	return &ledger.Snapshots[teamwork.State]{
		Encode: func(st *teamwork.State) ([]byte, error) {
			if !st.Created() {
				return nil, nil
			}
			return st.Snapshot()
		},
		Decode: func(raw []byte) (*teamwork.State, error) { return teamwork.Restore(raw) },
		Seq:    (*teamwork.State).Seq,
		Logger: logger,
	}
}

// newID returns the id of a new team, which cannot be guessed.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	return "team_" + hex.EncodeToString(b[:])
}

// Start opens the registry and begins to answer requests, to take commands and to relay.
func (s *Service) Start(ctx context.Context) error {
	// The ledger lists the service in the directory, and requests come at once. Relays start
	// after it, because only listed replicas get relays.
	for _, start := range []func(context.Context) error{
		s.openQuota, func(ctx context.Context) error { return s.snapshots.Open(ctx, s.deps.Conn) }, func(ctx context.Context) error { return s.registry.open(ctx, s.deps.Conn) }, s.rpc.Start, s.pulse.start, s.Service.Start, s.owners.start,
	} {
		if err := start(ctx); err != nil {
			s.Stop() //nolint:contextcheck // ending takes a context of its own
			return fmt.Errorf("team service: %w", err)
		}
	}
	s.follower.Start(ctx)
	return nil
}

// Drain hands the teams over, answers open requests and finishes commands in progress.
func (s *Service) Drain(ctx context.Context) error {
	err := errors.Join(s.rpc.Drain(ctx), s.Service.Drain(ctx))
	s.follower.Stop()
	s.owners.stop()
	s.pulse.stop()
	s.registry.close()
	s.quota.Close()
	return err
}

// Stop ends at once. The bus delivers commands in progress to another replica, which also completes
// the relay.
func (s *Service) Stop() {
	s.rpc.Stop()
	s.Service.Stop()
	s.follower.Stop()
	s.owners.stop()
	s.pulse.stop()
	s.registry.close()
	s.quota.Close()
}
