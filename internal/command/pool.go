package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
)

const (
	// poolPull is the time for which one pull waits for work, and after which a pull that died with its server is
	// detected.
	poolPull = 5 * time.Second
	// lastPull is the time for which a pull may still deliver after the pool begins to leave: otherwise a message on
	// its way would be lost for the ack wait.
	lastPull = 250 * time.Millisecond
	// pullPause spaces the attempts to pull while the bus fails.
	pullPause = 500 * time.Millisecond
)

// pool handles the messages of one durable consumer, which any number of processes share, several at once. It pulls a
// message only for a free slot, so that a busy replica does not hold messages that an idle one could handle.
type pool struct {
	*life
	conn   *bus.Conn
	stream string
	config jetstream.ConsumerConfig
	slots  chan struct{}
	handle func(jetstream.Msg)
	log    *zerolog.Logger
}

// start creates the consumer and begins to pull.
func (p *pool) start(ctx context.Context) error {
	ctx, cancel := p.starting(ctx)
	defer cancel()
	cons, err := bus.Persist(ctx, p.conn, "waiting for stream "+p.stream, func(ctx context.Context) (jetstream.Consumer, error) {
		return consumer(ctx, p.conn, p.stream, p.config)
	})
	if err != nil {
		return err
	}
	return p.take(func() error { return p.pull(cons) }) //nolint:contextcheck // pulling outlives the start
}

// consumer creates the consumer, or returns the one that another replica has created.
func consumer(ctx context.Context, c *bus.Conn, stream string, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	cons, err := c.JS().CreateOrUpdateConsumer(ctx, stream, cfg)
	if err != nil {
		return nil, fmt.Errorf("make the consumer %s of stream %s: %w", cfg.Durable, stream, err)
	}
	return cons, nil
}

func (p *pool) pull(cons jetstream.Consumer) error {
	for {
		select {
		case <-p.quit.Done():
			return nil
		case p.slots <- struct{}{}:
		}
		msg, err := p.next(cons)
		if err != nil || msg == nil {
			<-p.slots
		}
		switch {
		case err != nil && gone(err):
			return err
		case err != nil:
			cons = p.mend(cons, err)
		case msg == nil:
		case p.quit.Err() != nil:
			if err := msg.Nak(); err != nil { // this process has not started it
				p.log.Warn().Err(err).Msg("failed to return last messages to queue")
			}
			<-p.slots
		default:
			p.wg.Add(1)
			p.short.Go(func() {
				defer p.wg.Done()
				defer func() { <-p.slots }()
				p.handle(msg)
			})
		}
	}
}

// next returns a message, or nil if none came in time.
func (p *pool) next(cons jetstream.Consumer) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(p.kill, poolPull) // Stop waits for the pull before it cancels kill
	defer cancel()
	unhook := context.AfterFunc(p.quit, func() { time.AfterFunc(lastPull, cancel) })
	defer unhook()
	batch, err := cons.Fetch(1, jetstream.FetchContext(ctx))
	if err != nil {
		return nil, err
	}
	if msg := <-batch.Messages(); msg != nil {
		return msg, nil
	}
	if ctx.Err() != nil || errors.Is(batch.Error(), nats.ErrTimeout) {
		return nil, nil
	}
	return nil, batch.Error()
}

// mend waits briefly and creates the consumer again, in case it has vanished.
func (p *pool) mend(cons jetstream.Consumer, why error) jetstream.Consumer {
	troubled(p.log, p.config.Durable, why)
	select {
	case <-p.quit.Done():
		return cons
	case <-time.After(pullPause):
	}
	ctx, cancel := context.WithTimeout(p.quit, poolPull)
	defer cancel()
	again, err := consumer(ctx, p.conn, p.stream, p.config)
	if err != nil {
		return cons
	}
	return again
}

// gone reports whether the connection was closed permanently.
func gone(err error) bool {
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, jetstream.ErrConnectionClosed)
}

// troubled logs the reason for a failed pull, at level debug if every failover causes it.
func troubled(log *zerolog.Logger, consumer string, why error) {
	level := zerolog.WarnLevel
	for _, usual := range []error{
		jetstream.ErrConsumerLeadershipChanged, jetstream.ErrServerShutdown, jetstream.ErrNoHeartbeat,
		nats.ErrNoResponders, nats.ErrReconnectBufExceeded, nats.ErrDisconnected, context.DeadlineExceeded,
	} {
		if errors.Is(why, usual) {
			level = zerolog.DebugLevel
		}
	}
	log.WithLevel(level).Err(why).Str("consumer", consumer).Msg("command pull will be retried")
}
