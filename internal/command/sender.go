// Package command moves commands over the bus: senders that know whether a
// command was accepted, consumers that handle the commands of one entity in order
// or share work among all replicas, timers, and dead letters.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// sendTry is how long one publish waits for its acknowledgement, and sendBudget
	// how long a sender goes on: a killed stream leader is replaced in 4 to 7.5 s.
	sendTry    = 3 * time.Second
	sendBudget = 15 * time.Second
	sendPause  = 100 * time.Millisecond
	// timerSlack is added to every due time: the server keeps schedules to the second
	// and was seen to fire them up to 0.6 s early.
	timerSlack = time.Second
)

// Sender publishes commands. It is safe for concurrent use.
type Sender struct{ conn *bus.Conn }

// NewSender returns a sender over the connection.
func NewSender(c *bus.Conn) *Sender { return &Sender{conn: c} }

// Send returns nil once the command is stored: it will be handled, whatever dies.
// Otherwise it returns fault.BusUnavailable, and the command may or may not have
// been stored; sending it again with the same ID is safe. A lost leader is waited
// for within ctx and 15 s; while there is no connection at all Send fails at once.
func (s *Sender) Send(ctx context.Context, c command.Command) error {
	if c.TraceParent == "" {
		c.TraceParent = telemetry.Inject(ctx)
	}
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode command %s.%s: %w", c.Service, c.Verb, err)
	}
	msg := nats.NewMsg(c.Address().Subject())
	msg.Data = body
	return s.publish(ctx, msg, jetstream.WithMsgID(c.DedupeID()))
}

// SetTimer schedules the timer, replacing what was set before for it. It arrives at
// the Timers of the service within seconds after at, and not before.
func (s *Sender) SetTimer(ctx context.Context, t subject.Timer, at time.Time) error {
	msg := nats.NewMsg(t.Set())
	return s.publish(ctx, msg, jetstream.WithScheduleAt(at.Add(timerSlack)), jetstream.WithScheduleTarget(t.Fire()))
}

func (s *Sender) publish(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) error {
	ctx, cancel := context.WithTimeout(ctx, sendBudget)
	defer cancel()
	for {
		try, done := context.WithTimeout(ctx, sendTry)
		_, err := s.conn.JS().PublishMsg(try, msg, opts...)
		done()
		if err == nil {
			return nil
		}
		if final(err) || !s.conn.Up() {
			return fault.New(fault.BusUnavailable).Wrap(err)
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.BusUnavailable).Wrap(err)
		case <-time.After(sendPause):
		}
	}
}

// final reports whether a repetition cannot help: the server has refused.
func final(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code < 500
}
