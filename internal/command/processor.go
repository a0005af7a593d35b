package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// busMaxWait is the time for which failures of the bus do not count as attempts at an ordered command: longer than a
// rolling restart of a cluster. A command that fails for longer has a cause of its own.
const busMaxWait = 10 * time.Minute

var errBus = fault.New(fault.BusUnavailable)

// processor handles commands until they are done, given up, or returned to the queue.
type processor struct {
	*life
	conn    *bus.Conn
	log     zerolog.Logger
	handler Handler
	dead    deadRecorder
	metrics *metrics
	broken  error // the error of its construction, returned by Start

	ackWait    time.Duration
	maxDeliver int
	backoff    []time.Duration
	inPlace    bool // retries without returning the command to the queue
}

func newProcessor(c *bus.Conn, service id.Name, log zerolog.Logger, r prometheus.Registerer, h Handler, onDead OnDead) *processor {
	d := &processor{life: newLife(), conn: c, log: log.With().Str("service", service.String()).Logger(), handler: h}
	d.metrics, d.broken = newMetrics(r, service)
	d.dead = deadRecorder{sender: NewSender(c), log: &d.log, onDead: onDead}
	return d
}

// verdict is the result of an attempt.
type verdict struct {
	outcome string
	answer  func() error // to the server; nil if not needed
	stay    bool         // may be retried in place
}

// handle handles one delivery and answers for it. It calls leave, if set, before it returns a message to the queue,
// so that this replica does not get the message again.
func (d *processor) handle(msg jetstream.Msg, leave func()) {
	meta, err := msg.Metadata()
	if err != nil {
		d.log.Error().Err(err).Msg("message dropped: no JetStream metadata")
		return
	}
	k := hold(d.kill, d.conn.NATS(), msg, d.ackWait)
	c, bad := decode(msg, d.conn.Partitions())
	deliveries := int(meta.NumDelivered) //nolint:gosec // far below any int
	if deliveries > 1 {
		d.metrics.again.Inc()
	}
	var v verdict
	switch {
	case bad != nil:
		v = d.giveUp(k, command.Command{}, bad.Error())
		d.metrics.count(v.outcome)
	case deliveries > d.maxDeliver:
		v = d.giveUp(k, c, fmt.Sprintf("it was delivered %d times, and no handler lived to say what became of it", deliveries-1))
		d.metrics.count(v.outcome)
	default:
		v = d.attempts(k, c, deliveries, meta.Timestamp)
	}
	if !k.release() && v.outcome != outcomeDone {
		return // another replica may have it by now
	}
	if v.answer == nil {
		return
	}
	if v.outcome == outcomeBack && leave != nil {
		leave()
	}
	if err := v.answer(); err != nil {
		// The bus delivers it again after the ack wait, which handlers must tolerate anyway.
		d.log.Warn().Err(err).Str("command", c.ID).Str("outcome", v.outcome).Msg("failed to acknowledge command")
	}
}

// attempts tries the command once, or, in place, until the verdict is final.
func (d *processor) attempts(k *claim, c command.Command, first int, accepted time.Time) verdict {
	began := time.Now()
	attempt := first
	for try := 1; ; try++ {
		end := d.metrics.begin(accepted)
		err := call(k.ctx, &d.log, d.handler, c, Delivery{Attempt: attempt, Final: attempt >= d.maxDeliver, Accepted: accepted})
		excused := d.inPlace && errors.Is(err, errBus) && time.Since(began) < busMaxWait
		v := d.judge(k, c, err, attempt, attempt >= d.maxDeliver && !excused)
		end(v.outcome)
		if !v.stay || !d.inPlace {
			return v
		}
		select {
		case <-k.ctx.Done():
			return d.judge(k, c, context.Cause(k.ctx), attempt, false)
		case <-d.quit.Done(): // the next owner continues at once
			return verdict{outcome: outcomeBack, answer: k.msg.Nak}
		case <-time.After(backoff(d.backoff, try)):
		}
		if !excused {
			attempt++
		}
	}
}

// judge turns the error of an attempt into a verdict.
func (d *processor) judge(k *claim, c command.Command, err error, attempt int, last bool) verdict {
	switch {
	case err == nil:
		return verdict{outcome: outcomeDone, answer: k.msg.Ack}
	case errors.Is(context.Cause(k.ctx), ErrClaimLost):
		d.log.Warn().Err(err).Str("command", c.ID).Msg("command claim lost while in progress")
		return verdict{outcome: outcomeUnsure}
	case d.kill.Err() != nil:
		return verdict{outcome: outcomeBack, answer: k.msg.Nak}
	case isPermanent(err), last:
		return d.giveUp(k, c, err.Error())
	}
	d.log.Warn().Err(err).Str("command", c.ID).Str("verb", label(c)).Int("attempt", attempt).Msg("command failed; will be retried")
	return verdict{outcome: outcomeRetry, answer: d.later(k, attempt), stay: true}
}

func (d *processor) later(k *claim, attempt int) func() error {
	return func() error { return k.msg.NakWithDelay(backoff(d.backoff, attempt)) }
}

// giveUp records the command as dead. If that fails, the bus delivers it again after the longest pause.
func (d *processor) giveUp(k *claim, c command.Command, reason string) verdict {
	if err := d.dead.record(k.ctx, k.msg, c, reason); err != nil {
		if d.kill.Err() != nil {
			return verdict{outcome: outcomeBack, answer: k.msg.Nak}
		}
		d.log.Error().Err(err).Str("command", c.ID).Str("reason", reason).Msg("failed to dead-letter command; will be retried")
		return verdict{outcome: outcomeRetry, answer: d.later(k, len(d.backoff))}
	}
	return verdict{outcome: outcomeDead, answer: k.msg.Term}
}
