package command

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// workersConcurrency suits work that waits for other systems most of the time.
	workersConcurrency = 16
	// workersAckWait is the delay until redelivery of a dead process' work: three heartbeats.
	workersAckWait = 10 * time.Second
	// workersMaxDeliver lets a command survive two crashes that it causes, and as many caused by other commands.
	workersMaxDeliver = 5
)

// workersBackoff spaces retries: a transient fault passes within a second, a failover within eight, and a fault of
// more than half a minute needs people.
var workersBackoff = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}

// WorkersConfig describes a service whose commands any replica may take.
type WorkersConfig struct {
	Service     id.Name
	Instance    id.Name         // for logs
	Concurrency int             // commands at once in this process; default 16
	AckWait     time.Duration   // delay until redelivery of a dead process' work; default 10 s
	MaxDeliver  int             // deliveries of a command before giving it up; default 5
	Backoff     []time.Duration // pauses between attempts; default 1 s, 5 s, 30 s
	Logger      zerolog.Logger
	Registry    prometheus.Registerer // may be nil
	OnDead      OnDead                // may be nil
}

func (c WorkersConfig) withDefaults() WorkersConfig {
	if c.Concurrency <= 0 {
		c.Concurrency = workersConcurrency
	}
	if c.AckWait <= 0 {
		c.AckWait = workersAckWait
	}
	if c.MaxDeliver <= 0 {
		c.MaxDeliver = workersMaxDeliver
	}
	if len(c.Backoff) == 0 {
		c.Backoff = workersBackoff
	}
	return c
}

// Workers takes commands from a queue that all replicas of a service share. It is a lifecycle component.
type Workers struct {
	*processor
	name string
	pool *pool
}

// NewWorkers returns a consumer that is not started.
func NewWorkers(c *bus.Conn, cfg WorkersConfig, h Handler) *Workers {
	cfg = cfg.withDefaults()
	d := newProcessor(c, cfg.Service, cfg.Logger, cfg.Registry, h, cfg.OnDead)
	d.ackWait, d.maxDeliver, d.backoff = cfg.AckWait, cfg.MaxDeliver, cfg.Backoff
	return &Workers{
		processor: d, name: cfg.Service.String() + " workers",
		pool: &pool{
			life: d.life, conn: c, stream: subject.StreamCommands,
			slots: make(chan struct{}, cfg.Concurrency), log: &d.log,
			handle: func(msg jetstream.Msg) { d.handle(msg, nil) },
			config: jetstream.ConsumerConfig{
				Durable: cfg.Service.String(), FilterSubject: subject.CommandFilterAll(cfg.Service),
				AckPolicy: jetstream.AckExplicitPolicy, AckWait: cfg.AckWait,
				MaxDeliver:    -1, // the replica counts: see deadRecorder
				MaxAckPending: -1, // every process limits itself
			},
		},
	}
}

// Name implements lifecycle.Component.
func (w *Workers) Name() string { return w.name }

// Start creates the shared consumer and begins to take commands.
func (w *Workers) Start(ctx context.Context) error {
	if w.broken != nil {
		return w.broken
	}
	if err := w.pool.start(ctx); err != nil {
		return fmt.Errorf("start the %s: %w", w.name, err)
	}
	return nil
}
