package command

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/eventdata"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Delivery counts the attempts at a command.
type Delivery struct {
	Attempt int  // 1 for the first; attempts whose process died count
	Final   bool // an error gives the command up: this is the last attempt

	Accepted time.Time // when the bus stored the command, by the clock of the server that led its stream then
}

// Handler handles one command. nil means done. An error marked Permanent gives the command up; any other error, and a
// panic, requests a retry. A command may be handled more than once, so handlers are idempotent.
//
// ctx ends when the component stops, and with cause ErrClaimLost when the bus may have delivered the command to
// another replica because no renewal succeeded for the ack wait. It does not end when the component drains.
type Handler func(ctx context.Context, c command.Command, d Delivery) error

type permanentError struct{ error }

func (p permanentError) Unwrap() error { return p.error }

// Permanent marks an error that a retry cannot fix. nil stays nil.
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

func backoff(list []time.Duration, attempt int) time.Duration {
	return list[min(max(attempt-1, 0), len(list)-1)]
}

// call runs the handler with the command's trace and turns a panic into an error.
func call(ctx context.Context, log *zerolog.Logger, h Handler, c command.Command, d Delivery) (err error) {
	ctx = telemetry.Extract(ctx, c.TraceParent)
	ctx, span := telemetry.Start(ctx, "process "+label(c), trace.SpanKindConsumer, telemetry.SystemNATS, telemetry.MessagingProcess,
		telemetry.KeyDestination.String(c.Service.String()), telemetry.KeyMessageID.String(c.ID))
	defer func() {
		if r := recover(); r != nil {
			log.Error().Str("command", c.ID).Str("verb", label(c)).Interface("panic", r).Bytes("stack", debug.Stack()).
				Msg("panic recovered in command handler")
			err = fmt.Errorf("the handler panicked: %v", r)
		}
		telemetry.End(span, err)
	}()
	return h(ctx, c, d)
}

// decode returns the command of a message. The bus routed it by its subject, so the body must agree with the subject.
func decode(msg jetstream.Msg, n subject.Partitions) (command.Command, error) {
	addr, err := n.ParseCommand(msg.Subject())
	if err != nil {
		return command.Command{}, err
	}
	var c command.Command
	if err := eventdata.Decode(msg.Data(), &c); err != nil {
		return command.Command{}, fmt.Errorf("decode command: %w", err)
	}
	if c.Address() != addr {
		return command.Command{}, fmt.Errorf("command %s: its body does not fit its subject %s", c.ID, msg.Subject())
	}
	return c, nil
}
