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
	// restAfter is the time without commands after which the replicas of a partition stop pulling. A conversation
	// continues within a minute or not for a while.
	restAfter = time.Minute
	// restSettle is the time for which a replica receives hints and pulls at the same time: interest in a subject
	// takes milliseconds to spread over the routes of a cluster, and the killed leader of a consumer may have
	// delivered messages that its successor delivers again.
	restSettle = 5 * time.Second
	// forgetAfter is the time after which the server removes a consumer without pulls. Crash loops back off for up to
	// 5 minutes, so attempts at a command that kills its process add up.
	forgetAfter = 15 * time.Minute
	// lookEvery bounds the delay of a command whose hint was lost.
	lookEvery = 15 * time.Second
	// lookBudget bounds one search: a stream without a leader does not answer.
	lookBudget = 5 * time.Second
	// standbyDelay lets the pull of a partition's owner arrive first.
	standbyDelay = 250 * time.Millisecond
	// hintBuffer holds the hints of a burst. Further hints are dropped: the buffer already names their partitions, or
	// the next search finds their commands.
	hintBuffer = 256
)

// errQuiet ends the service of a partition without commands.
var errQuiet = errors.New("partition is quiet")

// listen subscribes to the copies of commands that the bus delivers to subscribers at their publication. Each is a
// hint that wakes the partition; its content is not used.
func (p *position) listen() error {
	if p.hint != nil {
		return nil
	}
	select {
	case <-p.rung: // set by a command that was handled before
	default:
	}
	sub, err := p.conn.NATS().ChanSubscribe(p.config.FilterSubject, p.hints)
	if err != nil {
		return fmt.Errorf("subscribe to hints of partition %s: %w", p.partition, err)
	}
	p.hint = sub
	return nil
}

// deafen ends the subscription of listen.
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

// rest waits until the partition has a command, and reports whether the position should serve it. A standby waits
// longer, so that the owner comes first.
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

// quiet reports whether the partition's consumer, over all replicas, has neither pending nor unacknowledged commands
// and has not delivered any for RestAfter.
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
			o.log.Debug().Err(err).Msg("retry look for waiting commands")
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
		if c, err := subject.ParseCommand(s); err == nil {
			o.positions[c.Partition()].ring()
		}
	}
	return nil
}
