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
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	workersAckWait    = 10 * time.Second // progress every third; a dead worker's work is out again after this
	workersMaxDeliver = 8
	workersPull       = 5 * time.Second // how long one pull waits for work
)

// WorkersConfig describes a service whose commands any replica may take.
type WorkersConfig struct {
	Service     id.Name
	Instance    id.Name
	Concurrency int           // commands at once in this process; default 16
	AckWait     time.Duration // default 10 s
	MaxDeliver  int           // default 8
	Backoff     []time.Duration
	Logger      zerolog.Logger
	OnDead      func(ctx context.Context, c command.Command, reason string)
}

// Workers takes commands from a queue that all replicas share. A command is pulled
// only when there is a free slot for it, so a busy replica holds nothing back. It is
// a lifecycle component.
type Workers struct {
	conn *bus.Conn
	cfg  WorkersConfig
	h    Handler
	u    undertaker

	ctx    context.Context // ends at Stop: handlers see it
	cancel context.CancelFunc
	quit   context.Context // ends at Drain: nothing is pulled any more
	leave  context.CancelFunc
	fail   chan error

	mu    sync.Mutex
	stops []func()
	wg    sync.WaitGroup
}

// NewWorkers returns a consumer that is not started.
func NewWorkers(c *bus.Conn, cfg WorkersConfig, h Handler) *Workers {
	if cfg.Concurrency <= 0 {
		cfg.Concurrency = 16
	}
	if cfg.AckWait <= 0 {
		cfg.AckWait = workersAckWait
	}
	if cfg.MaxDeliver <= 0 {
		cfg.MaxDeliver = workersMaxDeliver
	}
	if len(cfg.Backoff) == 0 {
		cfg.Backoff = defaultBackoff
	}
	ctx, cancel := context.WithCancel(context.Background())
	quit, leave := context.WithCancel(ctx)
	return &Workers{
		conn: c, cfg: cfg, h: h, ctx: ctx, cancel: cancel, quit: quit, leave: leave, fail: make(chan error, 1),
		u: undertaker{conn: c, sender: NewSender(c), log: cfg.Logger, onDead: cfg.OnDead},
	}
}

// Name implements lifecycle.Component.
func (w *Workers) Name() string { return w.cfg.Service.String() + " workers" }

// Failed implements lifecycle.Component.
func (w *Workers) Failed() <-chan error { return w.fail }

// Start makes the shared consumer and begins to take commands.
func (w *Workers) Start(ctx context.Context) error {
	if w.ctx.Err() != nil {
		return errors.New("workers: started after the end")
	}
	name := w.cfg.Service.String()
	cons, err := w.conn.JS().CreateOrUpdateConsumer(ctx, subject.StreamCommands, jetstream.ConsumerConfig{
		Durable: name, FilterSubject: subject.CommandFilterAll(w.cfg.Service),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: w.cfg.AckWait, MaxDeliver: w.cfg.MaxDeliver,
		MaxAckPending: -1, // every worker bounds itself
	})
	if err != nil {
		return fmt.Errorf("make the consumer %s: %w", name, err)
	}
	stop, err := w.u.watch(name)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.stops = append(w.stops, stop)
	w.mu.Unlock()
	w.wg.Go(func() { w.pull(cons) })
	return nil
}

func (w *Workers) pull(cons jetstream.Consumer) {
	slots := make(chan struct{}, w.cfg.Concurrency)
	for {
		select {
		case <-w.quit.Done():
			return
		case slots <- struct{}{}:
		}
		msg, err := w.next(cons)
		if err != nil {
			w.cfg.Logger.Warn().Err(err).Str("service", w.cfg.Service.String()).Msg("work cannot be pulled")
			select {
			case <-w.quit.Done():
			case <-time.After(time.Second):
			}
		}
		if msg == nil {
			<-slots
			continue
		}
		w.wg.Go(func() {
			defer func() { <-slots }()
			w.handle(msg)
		})
	}
}

// next returns the next message, or nil when there was none for a while. A pull is
// not broken off when the workers drain: a message that is already on its way would
// be lost until the ack wait is over.
func (w *Workers) next(cons jetstream.Consumer) (jetstream.Msg, error) {
	wait := workersPull
	batch, err := cons.Fetch(1, jetstream.FetchMaxWait(wait))
	if err != nil {
		return nil, err
	}
	select {
	case msg := <-batch.Messages():
		if msg != nil {
			return msg, nil
		}
	case <-w.ctx.Done():
		return nil, nil
	}
	if err := batch.Error(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return nil, nil
}

func (w *Workers) handle(msg jetstream.Msg) {
	c, err := decode(msg)
	if err != nil {
		w.settle(w.u.bury(w.ctx, msg, command.Command{}, err.Error()))
		return
	}
	meta, err := msg.Metadata()
	if err != nil {
		w.settle(err)
		return
	}
	if w.quit.Err() != nil { // it arrived while we were leaving: nobody has touched it
		w.settle(msg.Nak())
		return
	}
	attempt := int(meta.NumDelivered) //nolint:gosec // bounded by MaxDeliver
	d := Delivery{Attempt: attempt, Final: attempt >= w.cfg.MaxDeliver}
	stop := keepAlive(msg, w.cfg.AckWait)
	err = call(w.ctx, w.cfg.Logger, w.h, c, d)
	stop()
	switch {
	case err == nil:
		w.settle(msg.Ack())
	case w.ctx.Err() != nil:
		_ = msg.Nak() // another worker may have it at once
	case isPermanent(err), d.Final:
		w.settle(w.u.bury(w.ctx, msg, c, err.Error()))
	default:
		w.cfg.Logger.Warn().Err(err).Str("command", c.ID).Int("attempt", attempt).Msg("work failed and is tried again")
		w.settle(msg.NakWithDelay(backoff(w.cfg.Backoff, attempt)))
	}
}

func (w *Workers) settle(err error) {
	if err != nil {
		w.cfg.Logger.Warn().Err(err).Str("service", w.cfg.Service.String()).Msg("work could not be settled")
	}
}

// Drain takes no new work and finishes what is on.
func (w *Workers) Drain(ctx context.Context) error {
	w.leave()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.wg.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop ends at once: handlers see their context end, and what they leave undone is
// handed back to the queue.
func (w *Workers) Stop() {
	w.cancel()
	w.mu.Lock()
	for _, f := range w.stops {
		f()
	}
	w.stops = nil
	w.mu.Unlock()
	w.wg.Wait()
}
