package command

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// group is the one priority group of every partition.
	group = "owner"
	// Priorities of pulls: an owner's are served before anybody else's.
	ownerPriority, standbyPriority = 0, 9
	// pullExpiry renews waiting pulls. Those that died with their server are noticed
	// after as long.
	pullExpiry = 4 * time.Second
	// pullBatch keeps a pull waiting at the server while a command is handled, so that
	// the owner is first again when it is done. Only one command is out at a time all
	// the same. It is also the client's buffer, which must hold the server's heartbeats
	// of one pull.
	pullBatch = 64
	// handBack is how long a position that is left is asked for what is still in its
	// buffer.
	handBack = time.Second
)

// position is the place of one replica in the line before one partition.
type position struct {
	*desk
	partition subject.Partition
	config    jetstream.ConsumerConfig
	consumer  jetstream.Consumer

	mu       sync.Mutex
	priority uint8
	moved    context.CancelFunc // ends the turn that was begun with another priority
}

func newPosition(d *desk, p subject.Partition, cfg jetstream.ConsumerConfig) *position {
	return &position{desk: d, partition: p, config: cfg, priority: standbyPriority, moved: func() {}}
}

// rank moves the position up or down. What is on is finished first.
func (p *position) rank(priority uint8) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.priority != priority {
		p.priority = priority
		p.moved()
	}
}

// turn returns a context that ends when the position is moved or left.
func (p *position) turn() (context.Context, uint8) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved() // releases the one before
	ctx, cancel := context.WithCancel(p.quit)
	p.moved = cancel
	return ctx, p.priority
}

// turnOver releases the last turn.
func (p *position) turnOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved()
}

// attend handles commands until the component leaves.
func (p *position) attend() error {
	defer p.turnOver()
	for p.quit.Err() == nil {
		ctx, priority := p.turn()
		err := p.serve(ctx, priority)
		switch {
		case ctx.Err() != nil:
		case gone(err):
			return err
		default:
			p.mend(err)
		}
	}
	return nil
}

// serve handles commands one after the other until ctx ends or pulling fails.
func (p *position) serve(ctx context.Context, priority uint8) error {
	iter, err := p.consumer.Messages(
		jetstream.PullMaxMessages(pullBatch), jetstream.PullExpiry(pullExpiry),
		jetstream.PullPriorityGroup(group), jetstream.PullPrioritized(priority))
	if err != nil {
		return err
	}
	defer p.leave(iter)
	for ctx.Err() == nil {
		msg, err := iter.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		p.handle(msg, func() { p.leave(iter) })
	}
	return ctx.Err()
}

// leave gives the place in the line up and hands back what has arrived meanwhile.
func (p *position) leave(iter jetstream.MessagesContext) {
	defer iter.Stop()
	iter.Drain()
	for {
		msg, err := iter.Next(jetstream.NextMaxWait(handBack))
		if err != nil {
			return
		}
		if err := msg.Nak(); err != nil {
			p.log.Warn().Err(err).Msg("what arrived last could not be handed back")
		}
	}
}

// mend waits a little and makes the consumer again, in case it has vanished.
func (p *position) mend(why error) {
	troubled(&p.log, p.config.Durable, why)
	select {
	case <-p.quit.Done():
		return
	case <-time.After(pullPause):
	}
	ctx, cancel := context.WithTimeout(p.quit, poolPull)
	defer cancel()
	if again, err := consumer(ctx, p.conn, subject.StreamCommands, p.config); err == nil {
		p.consumer = again
	}
}
