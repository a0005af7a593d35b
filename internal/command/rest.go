package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// restAfter is how long a partition is quiet before its replicas stop pulling. A
	// conversation comes back within a minute or not for a while.
	restAfter = time.Minute
	// restSettle is how long a replica listens for hints and pulls at the same time: it
	// takes interest in a subject milliseconds to spread over the routes of a cluster, and
	// the killed leader of a consumer may have delivered what its successor delivers again.
	restSettle = 5 * time.Second
	// forgetAfter is when the server removes a consumer without pulls. Crash loops back
	// off for up to 5 minutes: attempts at a command that kills its process add up.
	forgetAfter = 15 * time.Minute
	// lookEvery bounds how long a command waits whose hint was lost.
	lookEvery = 15 * time.Second
	// lookBudget bounds one look: a stream without a leader does not answer.
	lookBudget = 5 * time.Second
	// standbyDelay lets the pull of a partition's owner arrive first.
	standbyDelay = 250 * time.Millisecond
	// hintBuffer holds the hints of a burst. Hints beyond it are dropped: they name
	// partitions that others in the buffer name, too, or the next look finds them.
	hintBuffer = 256
)

// errQuiet ends serving a partition that has nothing to do.
var errQuiet = errors.New("partition is quiet")

// listen subscribes to the copies of commands that the bus hands to subscribers as they
// are published. Each is a hint to wake the partition; its content is not used.
func (p *position) listen() error {
	if p.hint != nil {
		return nil
	}
	select {
	case <-p.rung: // by a command that was handled before
	default:
	}
	sub, err := p.conn.NATS().ChanSubscribe(p.config.FilterSubject, p.hints)
	if err != nil {
		return fmt.Errorf("subscribe to hints of partition %s: %w", p.partition, err)
	}
	p.hint = sub
	return nil
}

// deafen ends listen.
func (p *position) deafen() {
	if p.hint == nil {
		return
	}
	if err := p.hint.Unsubscribe(); err != nil && !gone(err) {
		p.log.Debug().Err(err).Str("partition", p.partition.String()).Msg("unsubscribe from hints")
	}
	p.hint = nil
}

// ring wakes the position if it rests.
func (p *position) ring() {
	select {
	case p.rung <- struct{}{}:
	default:
	}
}

// rest waits until a command is there for the partition, and reports whether the
// position is to serve it. A standby gives the owner a head start.
func (p *position) rest() bool {
	p.resting.Store(true)
	defer p.resting.Store(false)
	select {
	case <-p.quit.Done():
		return false
	case <-p.rung:
	}
	p.deafen()
	p.mu.Lock()
	standby := p.priority != ownerPriority
	p.mu.Unlock()
	if standby {
		select {
		case <-p.quit.Done():
			return false
		case <-time.After(standbyDelay):
		}
	}
	return true
}

// quiet reports whether the partition's consumer, of all replicas together, has nothing
// to deliver, nothing out, and delivered nothing lately.
func (p *position) quiet(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookBudget)
	defer cancel()
	info, err := p.consumer.Info(ctx)
	if err != nil || info.NumPending > 0 || info.NumAckPending > 0 {
		return false
	}
	last := info.Delivered.Last
	return last == nil || info.TimeStamp.Sub(*last) >= p.restAfter
}

// hear wakes partitions by hints until the component leaves.
func (o *Ordered) hear() error {
	for {
		select {
		case <-o.quit.Done():
			return nil
		case msg := <-o.hints:
			if c, err := subject.ParseCommand(msg.Subject); err == nil {
				o.positions[c.Partition()].ring()
			}
		}
	}
}

// patrol looks for commands whose hints were lost, until the component leaves: now and
// then, and whenever the connection is back.
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
			o.log.Debug().Err(err).Msg("retry look for waiting commands")
		}
	}
}

// look wakes the resting partitions that have commands in the stream, be they new or in
// the hands of a replica that is gone.
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
		if c, err := subject.ParseCommand(s); err == nil {
			o.positions[c.Partition()].ring()
		}
	}
	return nil
}
