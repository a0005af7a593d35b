package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Delivery says how often a command has been tried.
type Delivery struct {
	Attempt int  // 1 for the first delivery
	Final   bool // there will be no other
}

// Handler handles one command. nil means done. An error marked Permanent gives the
// command up; any other error asks for a repetition. A command may be handled more
// than once, so handlers are idempotent. A panic counts as an error.
type Handler func(ctx context.Context, c command.Command, d Delivery) error

type permanentError struct{ error }

func (p permanentError) Unwrap() error { return p.error }

// Permanent marks an error that no repetition can mend. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

func isPermanent(err error) bool {
	_, ok := errors.AsType[permanentError](err)
	return ok
}

// defaultBackoff spaces repetitions: a passing fault is over within a second, a
// failover within eight, and what is not over after half a minute needs people.
var defaultBackoff = []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 8 * time.Second, 15 * time.Second}

func backoff(list []time.Duration, attempt int) time.Duration {
	return list[min(max(attempt-1, 0), len(list)-1)]
}

// call runs the handler with the command's trace, turning a panic into an error.
func call(ctx context.Context, log zerolog.Logger, h Handler, c command.Command, d Delivery) (err error) {
	ctx = telemetry.Extract(ctx, c.TraceParent)
	defer func() {
		if r := recover(); r != nil {
			log.Error().Str("command", c.ID).Interface("panic", r).Bytes("stack", debug.Stack()).Msg("a command handler panicked")
			err = fmt.Errorf("handler panicked: %v", r)
		}
	}()
	return h(ctx, c, d)
}

// decode returns the command of a message. The subject is what the bus routed by, so
// it has to agree with the body.
func decode(msg jetstream.Msg) (command.Command, error) {
	var c command.Command
	addr, err := subject.ParseCommand(msg.Subject())
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(msg.Data(), &c); err != nil {
		return c, fmt.Errorf("decode command: %w", err)
	}
	if c.Address() != addr {
		return c, fmt.Errorf("command %s: its body does not fit its subject %s", c.ID, msg.Subject())
	}
	return c, nil
}

// keepAlive tells the server every third of the ack wait that the message is being
// worked on, until the returned function is called.
func keepAlive(msg jetstream.Msg, ackWait time.Duration) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(ackWait / 3)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_ = msg.InProgress() // a lost heartbeat is made up for by the next
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
