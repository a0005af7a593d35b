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
	// poolPull is how long one pull waits for work. A pull that died with its server is
	// noticed after as long.
	poolPull = 5 * time.Second
	// lastPull is how long a pull may still bring something after the pool has been
	// told to leave: a message that is on its way would be lost for the ack wait.
	lastPull = 250 * time.Millisecond
	// pullPause spaces the attempts to pull while the bus is not well.
	pullPause = 500 * time.Millisecond
)

// pool handles the messages of one durable consumer, which any number of processes
// share, several at once. A message is pulled only when there is a free slot for it,
// so that a busy replica keeps nothing from an idle one.
type pool struct {
	*life
	conn   *bus.Conn
	stream string
	config jetstream.ConsumerConfig
	slots  chan struct{}
	handle func(jetstream.Msg)
	log    *zerolog.Logger
}

// start makes the consumer and begins to pull.
func (p *pool) start(ctx context.Context) error {
	ctx, cancel := p.starting(ctx)
	defer cancel()
	cons, err := bus.Persist(ctx, p.conn, "waiting for the stream "+p.stream, func(ctx context.Context) (jetstream.Consumer, error) {
		return consumer(ctx, p.conn, p.stream, p.config)
	})
	if err != nil {
		return err
	}
	p.intake.Add(1)
	err = p.run(func() error { //nolint:contextcheck // pulling outlives the start
		defer p.intake.Done()
		return p.pull(cons)
	})
	if err != nil {
		p.intake.Done()
	}
	return err
}

// consumer makes the consumer, or finds it as another replica has made it.
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
			if err := msg.Nak(); err != nil { // nobody has touched it
				p.log.Warn().Err(err).Msg("fail to hand back last messages")
			}
			<-p.slots
		default:
			p.wg.Go(func() {
				defer func() { <-p.slots }()
				p.handle(msg)
			})
		}
	}
}

// next returns a message, or nil if there was none for a while.
func (p *pool) next(cons jetstream.Consumer) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(p.kill, poolPull) // Stop waits for the pull before it kills
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

// mend waits a little and makes the consumer again, in case it has vanished.
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

// gone reports whether the connection was closed for good.
func gone(err error) bool {
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, jetstream.ErrConnectionClosed)
}

// troubled logs why a pull failed: not loudly if that happens in every failover.
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
	log.WithLevel(level).Err(why).Str("consumer", consumer).Msg("retry pull for commands")
}
