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
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Timers receives the due timers of a service, each at least once and at one of the
// replicas. It is a lifecycle component.
type Timers struct {
	conn    *bus.Conn
	service id.Name
	f       func(context.Context, subject.Timer) error
	log     zerolog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	run    jetstream.ConsumeContext
	wg     sync.WaitGroup
}

// NewTimers returns a consumer that is not started. f is called for one timer at a
// time; an error asks for the timer again later.
func NewTimers(c *bus.Conn, service id.Name, log zerolog.Logger, f func(context.Context, subject.Timer) error) *Timers {
	ctx, cancel := context.WithCancel(context.Background())
	return &Timers{conn: c, service: service, f: f, log: log, ctx: ctx, cancel: cancel}
}

// Name implements lifecycle.Component.
func (t *Timers) Name() string { return t.service.String() + " timers" }

// Failed implements lifecycle.Component.
func (t *Timers) Failed() <-chan error { return nil }

// Start begins to receive timers.
func (t *Timers) Start(ctx context.Context) error {
	if t.ctx.Err() != nil {
		return errors.New("timers: started after the end")
	}
	name := t.service.String()
	cons, err := t.conn.JS().CreateOrUpdateConsumer(ctx, subject.StreamTimers, jetstream.ConsumerConfig{
		Durable: name, FilterSubject: subject.TimerFilter(t.service), DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: 30 * time.Second, MaxDeliver: -1,
	})
	if err != nil {
		return fmt.Errorf("make the timer consumer %s: %w", name, err)
	}
	run, err := cons.Consume(t.fire, jetstream.PullMaxMessages(16))
	if err != nil {
		return fmt.Errorf("receive the timers of %s: %w", name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run = run
	return nil
}

func (t *Timers) fire(msg jetstream.Msg) {
	timer, err := subject.ParseTimer(msg.Subject())
	if err == nil {
		err = t.f(t.ctx, timer)
	}
	if err == nil {
		err = msg.Ack()
	} else {
		_ = msg.NakWithDelay(5 * time.Second) // timers are not urgent to the second
	}
	if err != nil && t.ctx.Err() == nil {
		t.log.Warn().Err(err).Str("subject", msg.Subject()).Msg("a timer could not be handled")
	}
}

// Drain takes no new timers and finishes the one that is on.
func (t *Timers) Drain(ctx context.Context) error {
	t.mu.Lock()
	run := t.run
	t.mu.Unlock()
	if run == nil {
		return nil
	}
	run.Drain()
	select {
	case <-run.Closed():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop ends at once.
func (t *Timers) Stop() {
	t.cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil {
		t.run.Stop()
		<-t.run.Closed()
	}
}
