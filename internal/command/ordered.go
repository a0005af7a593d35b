package command

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// orderedAckWait is how long a command in the hands of a dead replica is waited
	// for. Handlers take milliseconds and report progress every third of it.
	orderedAckWait = 5 * time.Second
	// orderedMaxDeliver bounds the deliveries of one command over all replicas.
	orderedMaxDeliver = 10
	// inPlace bounds the repetitions within one delivery: about half a minute with the
	// default back-off, which outlasts a failover.
	inPlace = 6
	// group is the one priority group of every partition.
	group = "owner"
	// Priorities of pulls: an owner's are served before anybody else's.
	ownerPriority, standbyPriority = 0, 9
	// pullExpiry renews waiting pulls; it bounds nothing that a user waits for, since a
	// dead connection's pulls are dropped with it.
	pullExpiry = 10 * time.Second
)

// OrderedConfig describes a service whose commands are handled in order.
type OrderedConfig struct {
	Service    id.Name
	Instance   id.Name
	AckWait    time.Duration // default 5 s
	MaxDeliver int           // default 10
	Backoff    []time.Duration
	Logger     zerolog.Logger
	OnDead     func(ctx context.Context, c command.Command, reason string)
}

// Ordered handles the commands of one entity in order and one at a time, over all
// replicas of the service. It is a lifecycle component.
//
// Every partition has one durable consumer that lets a single command be out at a
// time, so no other can overtake it, whoever holds it. All replicas wait at all
// partitions; which of them is served first is settled by rendezvous hashing over
// the live replicas, so that each entity's commands usually meet a warm cache, and
// a dead replica is replaced at once without anybody having to notice its death.
type Ordered struct {
	conn *bus.Conn
	dir  *directory.Directory
	cfg  OrderedConfig
	h    Handler
	u    undertaker

	ctx    context.Context // ends at Stop: handlers see it
	cancel context.CancelFunc
	fail   chan error

	mu        sync.Mutex
	parts     map[subject.Partition]*partition
	consumers map[subject.Partition]jetstream.Consumer
	stops     []func()
	ended     bool
	wg        sync.WaitGroup
}

// partition is the running pull loop of one partition.
type partition struct {
	priority uint8
	iter     jetstream.MessagesContext
	done     chan struct{}
}

// NewOrdered returns a consumer that is not started.
func NewOrdered(c *bus.Conn, dir *directory.Directory, cfg OrderedConfig, h Handler) *Ordered {
	if cfg.AckWait <= 0 {
		cfg.AckWait = orderedAckWait
	}
	if cfg.MaxDeliver <= 0 {
		cfg.MaxDeliver = orderedMaxDeliver
	}
	if len(cfg.Backoff) == 0 {
		cfg.Backoff = defaultBackoff
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Ordered{
		conn: c, dir: dir, cfg: cfg, h: h, ctx: ctx, cancel: cancel, fail: make(chan error, 1),
		u:         undertaker{conn: c, sender: NewSender(c), log: cfg.Logger, onDead: cfg.OnDead},
		parts:     map[subject.Partition]*partition{},
		consumers: map[subject.Partition]jetstream.Consumer{},
	}
}

// Name implements lifecycle.Component.
func (o *Ordered) Name() string { return o.cfg.Service.String() + " commands" }

// Failed implements lifecycle.Component.
func (o *Ordered) Failed() <-chan error { return o.fail }

// Start makes the consumers and begins to handle commands.
func (o *Ordered) Start(ctx context.Context) error {
	if o.ctx.Err() != nil {
		return errors.New("ordered commands: started after the end")
	}
	for _, p := range subject.AllPartitions() {
		if err := o.consumer(ctx, p); err != nil {
			o.Stop()
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	changed := make(chan struct{}, 1)
	o.stops = append(o.stops, o.dir.Watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}))
	changed <- struct{}{}
	o.wg.Go(func() { o.balance(changed) })
	return nil
}

func (o *Ordered) consumer(ctx context.Context, p subject.Partition) error {
	name := o.cfg.Service.String() + "-" + p.String()
	cons, err := o.conn.JS().CreateOrUpdateConsumer(ctx, subject.StreamCommands, jetstream.ConsumerConfig{
		Durable: name, FilterSubject: subject.CommandFilter(o.cfg.Service, p),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: o.cfg.AckWait, MaxDeliver: o.cfg.MaxDeliver,
		MaxAckPending:  1,
		PriorityPolicy: jetstream.PriorityPolicyPrioritized, PriorityGroups: []string{group},
	})
	if err != nil {
		return fmt.Errorf("make the consumer %s: %w", name, err)
	}
	stop, err := o.u.watch(name)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.consumers[p] = cons
	o.stops = append(o.stops, stop)
	return nil
}

// balance follows the directory and gives every partition its priority here.
func (o *Ordered) balance(changed <-chan struct{}) {
	for {
		select {
		case <-o.ctx.Done():
			return
		case <-changed:
		}
		members := o.dir.Members(directory.WhatService, o.cfg.Service)
		for _, p := range subject.AllPartitions() {
			o.place(p, o.priority(p, members))
		}
	}
}

func (o *Ordered) priority(p subject.Partition, members []directory.Member) uint8 {
	if owner(p, o.cfg.Instance, members) == o.cfg.Instance {
		return ownerPriority
	}
	return standbyPriority
}

// place (re)starts the loop of a partition if its priority has changed. A loop that
// is replaced finishes what it has begun first.
func (o *Ordered) place(p subject.Partition, prio uint8) {
	o.mu.Lock()
	old := o.parts[p]
	if o.ended || old != nil && old.priority == prio {
		o.mu.Unlock()
		return
	}
	iter, err := o.consumers[p].Messages(
		// Two pulls, so that one is waiting at the server while a command is handled.
		jetstream.PullMaxMessages(2), jetstream.PullThresholdMessages(1), jetstream.PullExpiry(pullExpiry),
		jetstream.PullPriorityGroup(group), jetstream.PullPrioritized(prio))
	if err != nil {
		o.mu.Unlock()
		o.failed(fmt.Errorf("pull commands of %s, partition %s: %w", o.cfg.Service, p, err))
		return
	}
	part := &partition{priority: prio, iter: iter, done: make(chan struct{})}
	o.parts[p] = part
	o.wg.Go(func() { o.pull(part) })
	o.mu.Unlock()
	if old != nil {
		old.iter.Drain()
	}
}

func (o *Ordered) failed(err error) {
	select {
	case o.fail <- err:
	default:
	}
}

func (o *Ordered) pull(part *partition) {
	defer close(part.done)
	for {
		msg, err := part.iter.Next()
		switch {
		case err == nil:
			o.handle(msg)
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return
		case errors.Is(err, jetstream.ErrNoHeartbeat):
			// The server is gone for a while; the client renews its pulls by itself.
		default:
			o.cfg.Logger.Warn().Err(err).Str("service", o.cfg.Service.String()).Msg("commands cannot be pulled")
			select {
			case <-o.ctx.Done():
				return
			case <-time.After(sendPause):
			}
		}
	}
}

// Drain takes no new commands and finishes those that are on.
func (o *Ordered) Drain(ctx context.Context) error {
	for _, part := range o.end() {
		part.iter.Drain()
		select {
		case <-part.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Stop ends at once. A command that is being handled is delivered again, here or
// elsewhere, after the ack wait.
func (o *Ordered) Stop() {
	o.cancel()
	for _, part := range o.end() {
		part.iter.Stop()
	}
	o.wg.Wait()
}

func (o *Ordered) end() []*partition {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for _, f := range o.stops {
		f()
	}
	o.stops = nil
	out := make([]*partition, 0, len(o.parts))
	for _, p := range o.parts {
		out = append(out, p)
	}
	return out
}
