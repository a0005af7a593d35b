package command

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// timersConcurrency bounds the concurrent handling of timers that become due in the same second.
	timersConcurrency = 8
	// timersAckWait is longer than the budget of a Sender, because handlers of timers mostly send commands.
	timersAckWait = 2 * sendBudget
)

// timersBackoff is the pause after a failure. Attempts do not end: a dropped timer would leave its entity open for
// ever, and one attempt in five minutes is cheap.
var timersBackoff = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 5 * time.Minute}

// Timers receives the due timers of a service, each at least once and at one of the replicas. It is a lifecycle
// component.
type Timers struct {
	*life
	name string
	f    func(context.Context, subject.Timer) error
	log  zerolog.Logger
	pool *pool
}

// NewTimers returns a consumer that is not started. It calls f for several timers at once; an error, or a panic,
// requests the timer again later.
func NewTimers(c *bus.Conn, service id.Name, log zerolog.Logger, f func(context.Context, subject.Timer) error) *Timers {
	t := &Timers{life: newLife(), name: service.String() + " timers", f: f, log: log}
	t.pool = &pool{
		life: t.life, conn: c, stream: subject.TimerStream(service),
		slots: make(chan struct{}, timersConcurrency), handle: t.fire, log: &t.log,
		config: jetstream.ConsumerConfig{
			Durable: service.String(), FilterSubject: subject.TimerFilter(service),
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: timersAckWait, MaxDeliver: -1,
		},
	}
	return t
}

// Name implements lifecycle.Component.
func (t *Timers) Name() string { return t.name }

// Start creates the shared consumer and begins to receive timers.
func (t *Timers) Start(ctx context.Context) error {
	if err := t.pool.start(ctx); err != nil {
		return fmt.Errorf("start the %s: %w", t.name, err)
	}
	return nil
}

func (t *Timers) fire(msg jetstream.Msg) {
	err := t.call(msg.Subject())
	switch {
	case err == nil:
		err = msg.Ack()
	case t.kill.Err() != nil:
		err = msg.Nak()
	default:
		attempt := 1
		if meta, err := msg.Metadata(); err == nil {
			attempt = int(meta.NumDelivered) //nolint:gosec // far below any int
		}
		t.log.Warn().Err(err).Str("subject", msg.Subject()).Int("attempt", attempt).Msg("timer failed; will be retried")
		err = msg.NakWithDelay(backoff(timersBackoff, attempt))
	}
	if err != nil {
		t.log.Warn().Err(err).Str("subject", msg.Subject()).Msg("failed to acknowledge timer")
	}
}

func (t *Timers) call(subj string) (err error) {
	timer, err := subject.ParseTimer(subj)
	if err != nil {
		t.log.Error().Err(err).Msg("message dropped: not a timer")
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			t.log.Error().Str("subject", subj).Interface("panic", r).Bytes("stack", debug.Stack()).Msg("panic recovered in timer handler")
			err = fmt.Errorf("the handler panicked: %v", r)
		}
	}()
	return t.f(t.kill, timer)
}
