package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// orderedAckWait is the time after which the bus delivers the command of a dead replica again. Handlers take
	// milliseconds, and renew their claim every third of it.
	orderedAckWait = 5 * time.Second
	// orderedMaxDeliver and orderedBackoff let a failing command delay its partition for half a minute, which outlasts
	// a failover.
	orderedMaxDeliver = 6
)

var orderedBackoff = []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 8 * time.Second, 15 * time.Second}

// OrderedConfig describes a service that handles its commands in order.
type OrderedConfig struct {
	Service    id.Name
	Instance   id.Name         // this replica's instance in the directory
	AckWait    time.Duration   // delay until redelivery of a dead replica's command; default 5 s
	MaxDeliver int             // attempts at a command before giving it up; default 6
	Backoff    []time.Duration // pauses between attempts; default 0.2 s to 15 s
	Logger     zerolog.Logger
	Registry   prometheus.Registerer // may be nil
	OnDead     OnDead                // may be nil
	// RestAfter is the time without commands after which a partition rests; default 1 min. In a cluster it must exceed
	// pullExpiry: missing heartbeats reveal a pull that its server has lost, and nats.go restarts their count at every
	// wait for a message.
	RestAfter time.Duration
	LookEvery time.Duration // interval of the search for commands whose hints were lost; default 15 s
}

func (c OrderedConfig) withDefaults() OrderedConfig {
	if c.AckWait <= 0 {
		c.AckWait = orderedAckWait
	}
	if c.MaxDeliver <= 0 {
		c.MaxDeliver = orderedMaxDeliver
	}
	if len(c.Backoff) == 0 {
		c.Backoff = orderedBackoff
	}
	if c.RestAfter <= 0 {
		c.RestAfter = restAfter
	}
	if c.LookEvery <= 0 {
		c.LookEvery = lookEvery
	}
	return c
}

// Ordered handles the commands of one entity in order and one at a time, over all replicas of the service. It is a
// lifecycle component.
//
// Each partition has one durable consumer that allows a single unacknowledged command, so commands cannot overtake
// each other, whichever replica handles them. All replicas pull from all partitions. Rendezvous hashing over the live
// replicas decides which one is served first, so that each entity's commands usually meet a warm cache, and another
// replica replaces a dead one at once, before its death is detected. When replicas come or go, the current command
// finishes where it is, and the next one goes to the new owner.
//
// A partition without commands rests: after a minute its replicas stop pulling, and after 15 the server removes the
// consumer, which in a cluster is a Raft group with its own heartbeats. The copy of a command that the bus delivers
// to subscribers wakes the partition. That copy may be lost, so the component also reads the stream every 15 s and
// after each reconnect.
//
// A failed command is retried in place, because other replicas must not handle the partition meanwhile anyway. An
// unavailable bus does not count as an attempt for ten minutes, since the command does not cause it.
type Ordered struct {
	*processor
	cfg       OrderedConfig
	name      string
	dir       *directory.Directory
	stream    jetstream.Stream
	hints     chan *nats.Msg
	positions []*position // by partition
}

// NewOrdered returns a consumer that is not started.
func NewOrdered(c *bus.Conn, dir *directory.Directory, cfg OrderedConfig, h Handler) *Ordered {
	cfg = cfg.withDefaults()
	d := newProcessor(c, cfg.Service, cfg.Logger, cfg.Registry, h, cfg.OnDead)
	d.ackWait, d.maxDeliver, d.backoff, d.inPlace = cfg.AckWait, cfg.MaxDeliver, cfg.Backoff, true
	o := &Ordered{processor: d, cfg: cfg, dir: dir, name: cfg.Service.String() + " commands", hints: make(chan *nats.Msg, hintBuffer)}
	for _, p := range c.Partitions().All() {
		o.positions = append(o.positions, newPosition(d, p, o.hints, jetstream.ConsumerConfig{
			Durable: cfg.Service.String() + "-" + p.String(), FilterSubject: subject.CommandFilter(cfg.Service, p),
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: cfg.AckWait,
			MaxDeliver:     -1, // the replica counts: see deadRecorder
			MaxAckPending:  1,  // keeps the order
			PriorityPolicy: jetstream.PriorityPolicyPrioritized, PriorityGroups: []string{group},
			InactiveThreshold: forgetAfter,
		}, cfg.RestAfter))
	}
	return o
}

// Name implements lifecycle.Component.
func (o *Ordered) Name() string { return o.name }

// Start begins to handle commands, the waiting ones included.
func (o *Ordered) Start(ctx context.Context) error {
	if o.broken != nil {
		return o.broken
	}
	if err := o.start(ctx); err != nil {
		return fmt.Errorf("start the %s: %w", o.name, err)
	}
	return nil
}

func (o *Ordered) start(ctx context.Context) (err error) {
	ctx, cancel := o.starting(ctx)
	defer cancel()
	o.stream, err = bus.Persist(ctx, o.conn, "waiting for stream of commands", func(ctx context.Context) (jetstream.Stream, error) {
		return o.conn.JS().Stream(ctx, subject.StreamCommands)
	})
	if err != nil {
		return fmt.Errorf("find the stream of commands: %w", err)
	}
	for _, p := range o.positions {
		if err := p.listen(); err != nil {
			return err
		}
		p.resting.Store(true)
	}
	if err := o.conn.Flush(ctx); err != nil {
		return fmt.Errorf("subscribe to hints: %w", err)
	}
	_, err = bus.Persist(ctx, o.conn, "waiting for stream of commands", func(ctx context.Context) (any, error) {
		return nil, o.look(ctx)
	})
	if err != nil {
		return err
	}
	o.rank()
	for _, p := range o.positions {
		if err := o.run(p.attend); err != nil {
			return err
		}
	}
	return errors.Join(o.run(o.hear), o.run(o.patrol), o.run(o.balance))
}

// balance follows the directory until the component leaves.
func (o *Ordered) balance() error {
	changed := make(chan struct{}, 1)
	defer o.dir.Watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for {
		o.rank()
		select {
		case <-o.quit.Done():
			return nil
		case <-changed:
		}
	}
}

// rank sets this replica's priority for every partition.
func (o *Ordered) rank() {
	members := o.dir.Members(directory.WhatService, o.cfg.Service)
	for _, p := range o.positions {
		if owner(p.partition, o.cfg.Instance, members) == o.cfg.Instance {
			p.rank(ownerPriority)
		} else {
			p.rank(standbyPriority)
		}
	}
}

// hear wakes partitions by hints until the component leaves.
func (o *Ordered) hear() error {
	for {
		select {
		case <-o.quit.Done():
			return nil
		case msg := <-o.hints:
			if c, err := o.conn.Partitions().ParseCommand(msg.Subject); err == nil {
				o.positions[o.conn.Partitions().OfCommand(c)].ring()
			}
		}
	}
}

// patrol searches for commands whose hints were lost, at intervals and after each reconnect, until the component
// leaves.
func (o *Ordered) patrol() error {
	back := make(chan struct{}, 1)
	defer o.conn.Watch(func(up bool) {
		if !up {
			return
		}
		select {
		case back <- struct{}{}:
		default:
		}
	})()
	t := time.NewTicker(o.cfg.LookEvery)
	defer t.Stop()
	for {
		select {
		case <-o.quit.Done():
			return nil
		case <-o.conn.Closed():
			return nats.ErrConnectionClosed
		case <-t.C:
		case <-back:
		}
		if err := o.look(o.quit); err != nil && o.quit.Err() == nil {
			o.log.Debug().Err(err).Msg("check for waiting commands will be retried")
		}
	}
}

// look wakes the resting partitions that have commands in the stream: new ones, or those of a dead replica.
func (o *Ordered) look(ctx context.Context) error {
	if !slices.ContainsFunc(o.positions, func(p *position) bool { return p.resting.Load() }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	info, err := o.stream.Info(ctx, jetstream.WithSubjectFilter(subject.CommandFilterAll(o.cfg.Service)))
	if err != nil {
		return fmt.Errorf("look for commands of %s: %w", o.cfg.Service, err)
	}
	for s := range info.State.Subjects {
		if c, err := o.conn.Partitions().ParseCommand(s); err == nil {
			o.positions[o.conn.Partitions().OfCommand(c)].ring()
		}
	}
	return nil
}
