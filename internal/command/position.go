package command

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func newPosition(d *processor, p subject.Partition, hints chan *nats.Msg, cfg jetstream.ConsumerConfig, restAfter time.Duration) *position {
	return &position{
		processor: d, partition: p, config: cfg, restAfter: restAfter, hints: hints,
		rung: make(chan struct{}, 1), priority: standbyPriority, moved: func() {},
	}
}

// rank changes the position's priority. The current command finishes first.
func (p *position) rank(priority uint8) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.priority != priority {
		p.priority = priority
		p.moved()
	}
}

// turn returns a context that ends when the priority changes or the component leaves.
func (p *position) turn() (context.Context, uint8) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.moved() // releases the previous turn
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
	defer p.deafen()
	awake := false
	for p.quit.Err() == nil {
		if !awake && !p.rest() {
			return nil
		}
		awake = true
		ctx, priority := p.turn()
		err := p.serve(ctx, priority)
		switch {
		case errors.Is(err, errQuiet):
			awake, p.consumer = false, nil // the server may have removed it by then
		case ctx.Err() != nil:
		case gone(err):
			return err
		default:
			p.pause(err)
		}
	}
	return nil
}

// serve handles commands one after the other until ctx ends, pulling fails, or the partition is quiet. It returns
// errQuiet only after it has subscribed to hints, which then wake the partition.
func (p *position) serve(ctx context.Context, priority uint8) error {
	iter, err := p.pull(ctx, priority)
	if err != nil {
		return err
	}
	defer p.leave(iter)
	wait, leaving := p.restAfter, false
	for ctx.Err() == nil {
		msg, err := next(ctx, iter, wait)
		switch {
		case err == nil:
			p.handle(msg, func() { p.leave(iter) })
			wait, leaving = p.restAfter, false
		case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
			return err
		case !p.quiet(ctx):
			wait, leaving = p.restAfter, false
		case leaving:
			return errQuiet
		default:
			if err := p.listen(); err != nil {
				return err
			}
			wait, leaving = min(p.restAfter, restSettle), true
		}
	}
	return ctx.Err()
}

// pull creates the consumer if it is missing, and starts a pull with the priority.
func (p *position) pull(ctx context.Context, priority uint8) (jetstream.MessagesContext, error) {
	if p.consumer == nil {
		making, cancel := context.WithTimeout(ctx, poolPull)
		defer cancel()
		found, err := p.find(making)
		if err != nil {
			return nil, err
		}
		p.consumer = found
	}
	return p.consumer.Messages(
		jetstream.PullMaxMessages(pullBatch), jetstream.PullExpiry(pullExpiry),
		jetstream.PullPriorityGroup(group), jetstream.PullPrioritized(priority))
}

// find returns the consumer, or creates it if it is missing or has another configuration. It does not touch a
// matching one, because other replicas may have a command from it.
func (p *position) find(ctx context.Context) (jetstream.Consumer, error) {
	found, err := p.conn.JS().Consumer(ctx, subject.StreamCommands, p.config.Durable)
	if err == nil {
		has := found.CachedInfo().Config
		if has.AckWait == p.config.AckWait && has.MaxAckPending == p.config.MaxAckPending && has.InactiveThreshold == p.config.InactiveThreshold {
			return found, nil
		}
	}
	return consumer(ctx, p.conn, subject.StreamCommands, p.config)
}

// next returns the next message, or context.DeadlineExceeded after wait.
func next(ctx context.Context, iter jetstream.MessagesContext, wait time.Duration) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return iter.Next(jetstream.NextContext(ctx))
}

// leave ends the pull and returns its unhandled messages to the queue.
func (p *position) leave(iter jetstream.MessagesContext) {
	defer iter.Stop()
	iter.Drain()
	for {
		msg, err := iter.Next(jetstream.NextMaxWait(handBack))
		if err != nil {
			return
		}
		if err := msg.Nak(); err != nil {
			p.log.Warn().Err(err).Msg("failed to return last messages to queue")
		}
	}
}

// pause waits briefly after a failure and discards the consumer, in case it has vanished.
func (p *position) pause(why error) {
	troubled(&p.log, p.config.Durable, why)
	p.consumer = nil
	select {
	case <-p.quit.Done():
	case <-time.After(pullPause):
	}
}
