// Package task is the service of the swarm's tasks. It creates tasks, assigns them to agents,
// delivers them, follows agents and clients until each task has its one end, and runs the tools
// that agents call. The pure reducer of package assignment decides.
//
// It keeps the inboxes of clients, to which it copies the events that concern them once and in
// order, keeps the registry of agents and providers, and answers requests about all of these. It
// does not talk to connections: gateways and the built-in assistant deliver its direct messages.
package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/internal/command"
	eventindex "github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/acks"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/ledger/decision"
	"github.com/waggle-dev/waggle/services/task/inbox"
	"github.com/waggle-dev/waggle/services/task/registry"
	"github.com/waggle-dev/waggle/services/tools"
)

// DefaultKeep is how long a message waits for a client that is away: the protocol's.
const DefaultKeep = 24 * time.Hour

// cachedTasks bounds the folded tasks kept in memory: four times the active tasks of a busy
// installation.
const cachedTasks = 4096

var dueTimer = id.MustName("due")

// Config holds the settings of the service. Zero values mean the defaults.
type Config struct {
	Rules   assignment.Rules
	Keep    time.Duration    // how long a message waits for a client that is away; default DefaultKeep
	AckWait time.Duration    // how long one command, or one tool call, may be silent
	Confirm time.Duration    // how long a gateway may take to queue what an agent is told; default 3 s
	Calls   int              // tool calls of tasks at once in this process; default of command.WorkersConfig
	Now     func() time.Time // nil = time.Now

	Registry prometheus.Registerer // of the metrics; nil: none

	Quota quota.Config // of open tasks that clients give; without a policy unlimited
	Daily *quota.Daily // of tool calls of people; nil = unlimited

	IndexEvery time.Duration // between two writes of one summary in the index; 0: its default
}

// Service handles the commands of tasks and clients and answers requests about the
// swarm. It is a lifecycle component; any number of replicas may run.
type Service struct {
	*base

	records    *records
	intake     *intake
	dispatcher *dispatcher
	askers     *askers
	jobs       *jobs
	clients    *clients
	catalogue  *catalogue
	shelf      *shelf
	calls      *calls
	outside    *outsideCalls
	repeats    *repeats
	deletions  *deletions

	index    *index
	watch    *watch
	children quota.Entities // of tasks of clients
	rpc      *rpc.Server
	workers  *command.Workers // of tool calls
	follower *eventindex.Follower
}

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
		cfg.Confirm = defaultConfirm
	}
	s := newService(cfg, deps, box)
	var err error
	if s.clients.inboxes, err = inbox.New(deps.Log, source, cfg.Now); err != nil {
		return nil, fmt.Errorf("task service: %w", err)
	}
	s.ledger, err = ledger.NewService(ledger.ServiceConfig[life, assignment.Env]{
		Service: cmd.Task, Kind: id.KindTask, Timer: dueTimer, Fired: cmd.CheckTask, Cached: cachedTasks, AckWait: cfg.AckWait, Now: cfg.Now,
		Fold: (*life).apply, Env: s.env, Decide: decide, Decided: s.expect, Handle: s.handle, FollowUp: s.followUp, Again: s.repeats.answer, Own: mayReport,
	}, deps)
	if err != nil {
		return nil, err
	}
	s.workers = s.calls.newWorkers()
	s.rpc = rpc.NewServer(deps.Conn, rpc.Config{
		Service: cmd.Task, Description: "Knows the agents, services, clients and tasks of the swarm",
		Logger: deps.Logger, Registry: cfg.Registry, Directory: deps.Directory,
	})
	s.offer(s.rpc)
	return s, nil
}

// newService returns the parts of the service, without what may fail.
func newService(cfg Config, deps ledger.Deps, box tools.Toolbox) *Service {
	x := newIndex()
	b := &base{cfg: cfg, deps: deps, registry: registry.New(deps.Directory, x.load), payloads: payload.New(deps.Conn)}
	x.moved = func(a agentKey) { b.registry.Busy(a.tenant, a.agent) }
	n := &notifier{conn: deps.Conn, agents: b.registry, logger: deps.Logger, confirm: cfg.Confirm}
	logs := &callLogs{base: b}
	s := &Service{
		base: b, index: x, records: &records{base: b, listed: eventindex.New(deps.Conn, deps.Log)}, dispatcher: &dispatcher{base: b, notifier: n},
		askers: &askers{base: b, notifier: n}, jobs: &jobs{b}, clients: &clients{base: b}, catalogue: &catalogue{base: b, tools: box},
		shelf: &shelf{base: b, tools: box}, repeats: &repeats{base: b, notifier: n}, deletions: &deletions{b},
	}
	s.intake = &intake{base: b, records: s.records}
	s.outside = &outsideCalls{base: b, logs: logs, shelf: s.shelf, tools: box}
	s.calls = &calls{base: b, logs: logs, tools: box, outside: s.outside}
	s.follower = ledger.Follower(deps, cmd.Task, eventindex.Config{Index: s.records.listed, Kind: id.KindTask, Every: cfg.IndexEvery, Fades: true})
	s.watch = newWatch(s)
	return s
}

// rules returns the rules, with defaults for absent ones.
func rules(r assignment.Rules) assignment.Rules {
	def := assignment.DefaultRules
	r.QueueTimeout = cmp.Or(r.QueueTimeout, def.QueueTimeout)
	r.AskTimeout = cmp.Or(r.AskTimeout, def.AskTimeout)
	r.Lease = cmp.Or(r.Lease, def.Lease)
	r.Pause = cmp.Or(r.Pause, def.Pause)
	r.Silence = cmp.Or(r.Silence, def.Silence)
	r.Tries = cmp.Or(r.Tries, def.Tries)
	r.MaxDepth = cmp.Or(r.MaxDepth, def.MaxDepth)
	return r
}

// Name implements lifecycle.Component.
func (s *Service) Name() string { return s.ledger.Name() }

// Failed implements lifecycle.Component.
func (s *Service) Failed() <-chan error { return s.ledger.Failed() }

// Start opens the buckets, and begins to answer requests and to take tool calls and
// commands.
func (s *Service) Start(ctx context.Context) error {
	var err error
	if s.acks, err = acks.Open(ctx, s.deps.Conn); err != nil {
		return fmt.Errorf("task service: %w", err)
	}
	limits := s.cfg.Quota
	limits.Conn, limits.Over = s.deps.Conn, s.records.isOver
	if err := s.intake.quota.Open(ctx, audit.Tasks, limits); err != nil {
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
	for _, start := range []func(context.Context) error{s.rpc.Start, s.workers.Start, s.ledger.Start} {
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
	err := errors.Join(s.rpc.Drain(ctx), s.workers.Drain(ctx), s.ledger.Drain(ctx))
	s.follower.Stop()
	s.watch.stop()
	s.registry.Close()
	s.intake.quota.Close()
	s.children.Close()
	return err
}

// Stop ends at once. Callers are told to ask again, and the bus delivers commands and calls in
// progress to another replica.
func (s *Service) Stop() {
	s.rpc.Stop()
	var pulls sync.WaitGroup // both wait for what their last pull may still bring
	pulls.Go(s.workers.Stop)
	pulls.Go(s.ledger.Stop)
	pulls.Wait()
	s.follower.Stop()
	s.watch.stop()
	s.registry.Close()
	s.intake.quota.Close()
	s.children.Close()
}

// offer adds the verbs of the service to the server.
func (s *Service) offer(r *rpc.Server) {
	rpc.Handle(r, cmd.OpenClient, s.clients.open)
	rpc.Handle(r, cmd.NameClient, s.clients.name)
	rpc.Handle(r, cmd.SendClient, s.clients.message)
	rpc.Handle(r, cmd.ListAgents, s.catalogue.list(cmd.ParticipantAgent))
	rpc.Handle(r, cmd.ListServices, s.catalogue.list(cmd.ParticipantService))
	rpc.Handle(r, cmd.ListClients, s.catalogue.list(cmd.ParticipantClient))
	rpc.Handle(r, cmd.ListServers, s.catalogue.servers)
	rpc.Handle(r, cmd.ListTools, s.catalogue.toolsOf)
	rpc.Handle(r, cmd.RunTool, s.outside.run)
	rpc.Handle(r, cmd.ShowTask, s.records.show)
	rpc.Handle(r, cmd.ReadTask, s.records.read)
	rpc.Handle(r, cmd.ListTasks, s.records.list)
	rpc.Handle(r, cmd.Submit, s.intake.submit)
	rpc.Handle(r, cmd.RetryTask, s.intake.retry)
	rpc.Handle(r, cmd.StartTool, s.outside.start)
	rpc.Handle(r, cmd.ListOffers, s.catalogue.offers)
	rpc.Handle(r, cmd.ReadOffer, s.catalogue.offer)
	rpc.Handle(r, cmd.Reindex, s.follower.Reindex)
}

// handle takes the commands about clients, and deletions.
func (s *Service) handle(ctx context.Context, c cmd.Command) (bool, error) {
	switch c.Verb {
	case cmd.TellClient:
		return true, s.clients.tell(ctx, c)
	case cmd.AckClient:
		return true, s.clients.acknowledge(ctx, c)
	case cmd.DeleteTask:
		return true, s.deletions.delete(ctx, c)
	}
	return false, nil
}

// decide asks the reducer.
func decide(l *life, c cmd.Command, env assignment.Env) (decision.Decision, error) {
	return l.Decide(c, env)
}

// env returns the agents of the tenant, and the entry of a requested tool.
func (s *Service) env(ctx context.Context, h *ledger.Log[life], c cmd.Command) (assignment.Env, error) {
	s.catchUp(ctx, c)
	tool := s.shelf.tool(ctx, c)
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

func (s *Service) live(t id.Tenant, now time.Time) assignment.Env {
	return assignment.Env{Now: now, Agents: s.registry.Agents(t), Rules: s.cfg.Rules}
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

const (
	// lookAgain is how soon a task that waits for an agent, or whose agent was not told
	// everything, is looked at again by itself: the net below the watch of the
	// directory. A task waits for 30 s, so this is six looks.
	lookAgain = 5 * time.Second
	// cancelledWith is the reason for cancelling the children of a task that has ended.
	cancelledWith = "the task that asked for it is over"
	// notDelivered is why a task is released that its agent was not handed.
	notDelivered = "not_delivered"
)

// followUp does the work that the state of a task entails. It derives all of it from the log, so
// that a redelivery after a crash completes it and a repetition does no harm. The client is told
// last: its copy marks the work as done.
func (s *Service) followUp(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
	l := h.State()
	if l.Created.IsZero() {
		return s.intake.create(ctx, h, c)
	}
	s.locate(h)
	for _, step := range []func(context.Context, *ledger.Log[life], cmd.Command) error{
		s.dispatcher.deliver, s.dispatcher.converse, s.intake.create, s.askers.family, s.askers.tell, s.calls.queue, s.jobs.ask, s.jobs.report, s.clients.relay,
	} {
		if err := step(ctx, h, c); err != nil {
			return err
		}
	}
	s.locate(h)
	if l.Done() {
		if err := s.intake.quota.Free(ctx, h.Ref.Tenant, h.Ref.Entity); err != nil {
			return err
		}
	}
	return s.ledger.SetTimer(ctx, h, s.due(h))
}

// locate notes where the task is.
func (s *Service) locate(h *ledger.Log[life]) {
	l := h.State()
	if l.Done() {
		s.index.drop(h.Ref, s.cfg.Now())
		return
	}
	s.index.put(h.Ref, place{
		task: l.Head().TaskID, agent: l.Holder(), attempt: l.Head().Attempt, seen: s.cfg.Now(),
		unsaid: l.owed(),
	})
}

// due is when the task is to be looked at again.
func (s *Service) due(h *ledger.Log[life]) time.Time {
	l := h.State()
	now := s.cfg.Now()
	due := l.Due(s.live(h.Ref.Tenant, now))
	soon := now.Add(lookAgain)
	if s.askers.owed(h) || !l.Done() && (l.Waiting() || l.owed()) && (due.IsZero() || soon.Before(due)) {
		return soon
	}
	return due
}
