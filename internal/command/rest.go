package command

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
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
		p.log.Debug().Err(err).Str("partition", p.partition.String()).Msg("failed to unsubscribe from hints")
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

const (
	// group is the only priority group of every partition.
	group = "owner"
	// Priorities of pulls: the server serves the owner's first.
	ownerPriority, standbyPriority = 0, 9
	// pullExpiry renews waiting pulls, and is the time after which pulls that died with their server are detected.
	pullExpiry = 4 * time.Second
	// pullBatch keeps a pull waiting at the server while a command is handled, so that the owner is first again
	// afterwards. The consumer still allows only one unacknowledged command. pullBatch is also the client's buffer,
	// which must hold the server's heartbeats of one pull.
	pullBatch = 64
	// handBack bounds the wait for messages that remain in the buffer of an abandoned position.
	handBack = time.Second
)

// position is one replica's pull on one partition. While the partition has no commands it rests, without consumer and
// pull: see rest.go.
type position struct {
	*processor
	partition subject.Partition
	config    jetstream.ConsumerConfig
	restAfter time.Duration
	hints     chan *nats.Msg // of all partitions of the service

	// Owned by the goroutine of attend.
	consumer jetstream.Consumer
	hint     *nats.Subscription // subscription to the partition's hints; nil while it is awake

	rung    chan struct{} // holds one signal: the partition has work
	resting atomic.Bool

	mu       sync.Mutex
	priority uint8
	moved    context.CancelFunc // ends the turn of the previous priority
}
