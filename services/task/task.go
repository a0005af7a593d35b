// Package task is the service of the swarm's tasks. It creates tasks, assigns them to agents,
// delivers them, follows agents and clients until each task has its one end, and runs the tools
// that agents call. The pure reducer of package assignment decides.
//
// It keeps the inboxes of clients, to which it copies the events that concern them once and in
// order, keeps the registry of agents and providers, and answers requests about all of these. It
// does not talk to connections: gateways and the built-in assistant deliver its direct messages.
package task

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/internal/eventlog"
	eventindex "github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/acks"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/task/inbox"
	"github.com/waggle-dev/waggle/services/task/notifier"
	"github.com/waggle-dev/waggle/services/task/registry"
	"github.com/waggle-dev/waggle/services/tools"
)

// DefaultKeep is how long a message waits for a client that is away: the protocol's.
const DefaultKeep = 24 * time.Hour

// cachedTasks bounds the folded tasks kept in memory: four times the active tasks of a busy
// installation.
const cachedTasks = 4096

var dueTimer = id.MustName("due")

// New returns a service that is not started. The toolbox is where agents' and
// clients' calls of tools go.
func New(cfg Config, deps ledger.Deps, box tools.Toolbox) (*Service, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Rules = rules(cfg.Rules)
	if cfg.Keep <= 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.Confirm <= 0 {
		cfg.Confirm = notifier.DefaultConfirm
	}
	s := &Service{cfg: cfg, deps: deps, tools: box, index: newIndex(), payloads: payload.New(deps.Conn)}
	s.listed = eventindex.New(deps.Conn, deps.Log)
	s.follower = ledger.Follower(deps, cmd.Task, eventindex.Config{Index: s.listed, Kind: id.KindTask, Every: cfg.IndexEvery, Fades: true})
	s.registry = registry.New(deps.Directory, s.index.load)
	s.index.moved = func(a agentKey) { s.registry.Busy(a.tenant, a.agent) }
	s.notifier = notifier.New(deps.Conn, s.registry, deps.Logger, cfg.Confirm)
	var err error
	if s.inboxes, err = inbox.New(deps.Log, source, cfg.Now); err != nil {
		return nil, fmt.Errorf("task service: %w", err)
	}
	s.Service, err = ledger.NewService(ledger.ServiceConfig[life, assignment.Env]{
		Service: cmd.Task, Kind: id.KindTask, Timer: dueTimer, Fired: cmd.CheckTask, Cached: cachedTasks, AckWait: cfg.AckWait, Now: cfg.Now,
		Fold: (*life).apply, Env: s.env, Decide: decide, Decided: s.expect, Handle: s.handle, FollowUp: s.followUp, Again: s.again, Own: mayReport,
	}, deps)
	if err != nil {
		return nil, err
	}
	s.calls = s.workers()
	s.watch = newWatch(s)
	s.rpc = rpc.NewServer(deps.Conn, rpc.Config{
		Service: cmd.Task, Description: "Knows the agents, services, clients and tasks of the swarm",
		Logger: deps.Logger, Registry: cfg.Registry, Directory: deps.Directory,
	})
	s.offer(s.rpc)
	return s, nil
}

// Start opens the buckets, and begins to answer requests and to take tool calls and
// commands.
func (s *Service) Start(ctx context.Context) error {
	var err error
	if s.acks, err = acks.Open(ctx, s.deps.Conn); err != nil {
		return fmt.Errorf("task service: %w", err)
	}
	limits := s.cfg.Quota
	limits.Conn, limits.Over = s.deps.Conn, s.over
	if err := s.quota.Open(ctx, audit.Tasks, limits); err != nil {
		return fmt.Errorf("task service: %w", err)
	}
	if err := s.children.Open(ctx, audit.Children, limits); err != nil {
		return fmt.Errorf("task service: %w", err)
	}
	if err := s.registry.Open(ctx, s.deps.Conn, s.deps.Logger); err != nil {
		return fmt.Errorf("task service: %w", err)
	}
	s.watch.start()
	// The ledger is last: it takes the service's place in the directory, and its
	// clients ask at once.
	for _, start := range []func(context.Context) error{s.rpc.Start, s.calls.Start, s.Service.Start} {
		if err := start(ctx); err != nil {
			s.Stop()
			return fmt.Errorf("task service: %w", err)
		}
	}
	s.follower.Start(ctx)
	return nil
}

// Drain answers open requests and finishes commands and calls in progress.
func (s *Service) Drain(ctx context.Context) error {
	err := errors.Join(s.rpc.Drain(ctx), s.calls.Drain(ctx), s.Service.Drain(ctx))
	s.follower.Stop()
	s.watch.stop()
	s.registry.Close()
	s.quota.Close()
	s.children.Close()
	return err
}

// Stop ends at once. Callers are told to ask again, and the bus delivers commands and calls in
// progress to another replica.
func (s *Service) Stop() {
	s.rpc.Stop()
	var pulls sync.WaitGroup // both wait for what their last pull may still bring
	pulls.Go(s.calls.Stop)
	pulls.Go(s.Service.Stop)
	pulls.Wait()
	s.follower.Stop()
	s.watch.stop()
	s.registry.Close()
	s.quota.Close()
	s.children.Close()
}

// over reports whether a task has ended, or its log is deleted.
func (s *Service) over(ctx context.Context, t id.Tenant, task id.Entity) (bool, error) {
	st, err := ledger.Fold(ctx, s.deps.Log, subject.Log{Tenant: t, Kind: id.KindTask, Entity: task}, (*assignment.State).Apply)
	if errors.Is(err, eventlog.ErrDeleted) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return st.Created.IsZero() || st.Done(), nil
}

// decide asks the reducer.
func decide(l *life, c cmd.Command, env assignment.Env) (decision.Decision, error) {
	return l.Decide(c, env)
}

// expect counts the task that is about to be assigned, so that a task that is decided at
// the same time finds its agent with it.
func (s *Service) expect(h *ledger.Log[life], d decision.Decision) {
	for _, f := range d.Facts {
		if a, ok := f.Data.(event.TaskAssignedData); ok {
			s.index.put(h.Ref, place{task: a.TaskID, agent: a.AgentID, attempt: a.Attempt, unsaid: true, seen: s.cfg.Now()})
		}
	}
}

// catchUp waits until this copy of the directory holds the agent for which another replica created
// a task. After a timeout the task is decided with the present copy.
func (s *Service) catchUp(ctx context.Context, c cmd.Command) {
	var t cmd.NewTask
	if c.Verb != cmd.CreateTask || c.Decode(&t) != nil || t.Seen <= s.deps.Directory.Revision() {
		return
	}
	if err := s.deps.Directory.Reach(ctx, t.Seen); err != nil {
		s.deps.Logger.Warn().Err(err).Str("task", t.TaskID).Msg("task assigned with outdated directory")
	}
}

// env returns the agents of the tenant, and the entry of a requested tool.
func (s *Service) env(ctx context.Context, h *ledger.Log[life], c cmd.Command) (assignment.Env, error) {
	s.catchUp(ctx, c)
	tool := s.tool(ctx, c)
	env := s.live(h.Ref.Tenant, s.cfg.Now())
	env.Tool = tool
	root, child, spawns := h.State().Spawning(c, env.Rules)
	if !spawns {
		return env, nil
	}
	err := s.children.Hold(ctx, h.Ref.Tenant, root, id.EntityFromExternal(child))
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == fault.QuotaExceeded {
		env.Refused = f
		return env, nil
	}
	return env, err
}

// handle takes the commands about clients, and deletions.
func (s *Service) handle(ctx context.Context, c cmd.Command) (bool, error) {
	switch c.Verb {
	case cmd.TellClient:
		return true, s.tell(ctx, c)
	case cmd.AckClient:
		return true, s.acknowledge(ctx, c)
	case cmd.DeleteTask:
		return true, s.delete(ctx, c)
	}
	return false, nil
}
