package task

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waggle-dev/waggle/internal/command"
	eventindex "github.com/waggle-dev/waggle/internal/eventlog/index"
	"github.com/waggle-dev/waggle/internal/payload"
	"github.com/waggle-dev/waggle/internal/quota"
	"github.com/waggle-dev/waggle/internal/rpc"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/acks"
	"github.com/waggle-dev/waggle/services/assignment"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/task/inbox"
	"github.com/waggle-dev/waggle/services/task/notifier"
	"github.com/waggle-dev/waggle/services/task/registry"
	"github.com/waggle-dev/waggle/services/task/roster"
	"github.com/waggle-dev/waggle/services/tools"
)

// Config holds the settings of the service. Zero values mean the defaults.
type Config struct {
	Rules   assignment.Rules
	Keep    time.Duration    // how long a message waits for a client that is away; default DefaultKeep
	AckWait time.Duration    // how long one command, or one tool call, may be silent
	Confirm time.Duration    // how long a gateway may take to queue what an agent is told; default notifier.DefaultConfirm
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
	*ledger.Service[life, assignment.Env]
	cfg      Config
	deps     ledger.Deps
	tools    tools.Toolbox
	registry *registry.Registry
	index    *index
	inboxes  *inbox.Inboxes
	notifier *notifier.Notifier
	calls    *command.Workers
	rpc      *rpc.Server
	watch    *watch
	shelf    shelf
	acks     *acks.Acks
	quota    quota.Entities
	children quota.Entities // of tasks of clients

	payloads *payload.Store
	listed   *eventindex.Index // of tasks and their questions
	follower *eventindex.Follower
}

func (s *Service) live(t id.Tenant, now time.Time) assignment.Env {
	return assignment.Env{Now: now, Agents: s.registry.Agents(t), Rules: s.cfg.Rules}
}

// watch follows the directory. It stores new participants, releases tasks of lost agents, and looks again
// at tasks that an agent may take now. The tasks' timers cover changes that it misses.
type watch struct {
	s    *Service
	life context.Context //nolint:containedctx // from New to stop
	end  context.CancelFunc
	wake chan struct{}
	done chan struct{}
	seen map[roster.Key]uint64 // hash of the last known state of each participant, without fields that do not matter
	hash maphash.Seed
}

// source is the service in the events that it appends by itself.
const source = "waggle/task"

// shelf remembers for a moment which tools servers have. It is safe for concurrent use.
type shelf struct {
	mu    sync.Mutex
	known map[shelfKey]shelved
}

type shelfKey struct {
	tenant       id.Tenant
	kind, server string
}

type shelved struct {
	server tools.Server
	tools  []tools.Tool
	until  time.Time
}

// encode returns the JSON form of a command's data, which always has one: its raw
// members were valid when they arrived.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return raw
}

// once sends a command unless this process has sent it for this state of the task.
func (s *Service) once(ctx context.Context, h *ledger.Log[life], key string, c cmd.Command) error {
	return h.Outbox.Once(key, func() error { return s.sendTo(ctx, h, c) })
}

// sendTo sends a command of the task's tenant, to the task itself unless another key,
// and to this service unless another one, is named.
func (s *Service) sendTo(ctx context.Context, h *ledger.Log[life], c cmd.Command) error {
	c.Tenant = h.Ref.Tenant
	if c.Key.IsZero() {
		c.Key = h.Ref.Entity
	}
	if c.Service == (id.Name{}) {
		c.Service = cmd.Task
	}
	return s.Send(ctx, c)
}
