// Package command moves commands over the bus: senders that know whether a command was accepted,
// consumers that handle the commands of one entity in order or share work among all replicas,
// timers, and dead letters. It does not know what a command means.
//
// Replicas of a partition stop pulling after a minute without commands, and the server removes the consumer later: in a
// cluster each consumer is a Raft group, whose heartbeats were most of the load of an idle server. The copy of a command
// that plain subscribers get wakes the partition. If that copy is lost, the replicas find the command in the stream within
// 15 s.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// sendBudget bounds all attempts of a sender: a killed stream leader is replaced in 4 to 7.5 s.
	sendBudget = 15 * time.Second
	// maxID bounds the ids of commands, which become headers.
	maxID = 256
	// timerForm is the form of a due time in a schedule. The option of nats.go for it drops the fraction of the second, which
	// the server reads.
	timerForm = "@at 2006-01-02T15:04:05.000Z"
)

// Codes of server errors that nats.go does not name.
const (
	codeTooLarge    jetstream.ErrorCode = 10054
	codeStoreFailed jetstream.ErrorCode = 10077 // the stream is full
	codeIDInFlight  jetstream.ErrorCode = 10158 // another sender is storing the same command
)

// Sender publishes commands. It is safe for concurrent use.
type Sender struct {
	conn *bus.Conn
	sign func(*command.Command) error // nil: commands leave unsigned

	enter func(id.Tenant) (leave func(), err error) // nil: every tenant may send
}

// NewSender returns a sender over the connection.
func NewSender(c *bus.Conn) *Sender { return &Sender{conn: c} }

// Signing returns a sender that signs every command. sign fills in the time.
func (s *Sender) Signing(sign func(*command.Command) error) *Sender {
	return &Sender{conn: s.conn, sign: sign, enter: s.enter}
}

// Within returns a sender that calls enter before it sends a command of a tenant, and leave when the bus has answered. An error
// of enter refuses the command.
func (s *Sender) Within(enter func(id.Tenant) (leave func(), err error)) *Sender {
	return &Sender{conn: s.conn, sign: s.sign, enter: enter}
}

// Send returns nil once the command is stored: a service will handle it, whichever processes die. Otherwise it
// returns a fault, usually BusUnavailable, and the command may or may not be stored; a repeat with the same ID is
// safe. Send waits for a missing stream leader within ctx and 15 s, for a lost connection 3 s, and does not wait for
// a full stream. It fills in an empty Time, and an empty TraceParent from ctx.
func (s *Sender) Send(ctx context.Context, c command.Command) error { return s.SendAll(ctx, c) }

// message returns the message of a signed command, with the id by which the server knows repeats.
func (s *Sender) message(ctx context.Context, c command.Command) (*nats.Msg, error) {
	if c.TraceParent == "" {
		c.TraceParent = telemetry.Inject(ctx)
	}
	if c.Time.IsZero() {
		c.Time = time.Now().UTC()
	}
	var (
		body []byte
		err  error
	)
	if s.sign != nil {
		err = s.sign(&c)
	}
	if err == nil {
		body, err = json.Marshal(c)
	}
	if err != nil {
		return nil, fault.Newf(fault.InvalidField, "The data of the command %s is not valid JSON.", label(c)).At("data").Wrap(err)
	}
	msg := nats.NewMsg(s.conn.Partitions().Command(c.Address()))
	msg.Data = body
	msg.Header.Set(jetstream.MsgIDHeader, c.DedupeID())
	return msg, nil
}

// check refuses commands that would make an invalid subject or header.
func check(c command.Command) error {
	switch {
	case c.Service == id.Name{} || c.Verb == id.Name{} || c.Tenant.IsZero() || c.Key.IsZero():
		return fault.Newf(fault.InvalidField, "A command needs a service, a verb, a tenant and a key.")
	case c.ID == "" || len(c.ID) > maxID || !printable(c.ID):
		return fault.Newf(fault.InvalidField, "A command needs an id of 1 to %d printable ASCII characters.", maxID).At("id")
	}
	return nil
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func label(c command.Command) string { return c.Service.String() + "." + c.Verb.String() }

// SetTimer schedules the timer and replaces its earlier schedule. It arrives at the Timers of the service once, at the time by the
// server's clock and not before, and a quarter of a second after SetTimer at the earliest. Errors are those of Send.
func (s *Sender) SetTimer(ctx context.Context, t subject.Timer, at time.Time) error {
	msg := nats.NewMsg(t.Set())
	due := at.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
	msg.Header.Set(jetstream.ScheduleHeader, due.Format(timerForm))
	return s.publish(ctx, subject.TimerStream(t.Service), msg, jetstream.WithScheduleTarget(t.Fire()))
}

func (s *Sender) publish(caller context.Context, stream string, msg *nats.Msg, opts ...jetstream.PublishOpt) error {
	ctx, cancel := context.WithTimeout(caller, sendBudget)
	defer cancel()
	_, err := bus.Insist(ctx, s.conn, repeatable, func(ctx context.Context) (*jetstream.PubAck, error) {
		return s.conn.JS().PublishMsg(ctx, msg, opts...)
	})
	return s.stored(caller, stream, err)
}

// stored notes whether the stream takes messages, and returns the fault of a message that is not stored.
func (s *Sender) stored(caller context.Context, stream string, err error) error {
	if caller.Err() == nil { // it was tried for long enough
		s.conn.Wrote(stream, err)
	}
	switch {
	case err == nil:
		return nil
	case tooLarge(err):
		return fault.New(fault.MessageTooBig).Wrap(err)
	}
	return fault.New(fault.BusUnavailable).Wrap(err)
}

func tooLarge(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return errors.Is(err, nats.ErrMaxPayload) || ok && api.ErrorCode == codeTooLarge
}

// repeatable reports whether a retry can help.
func repeatable(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return (api.Code >= 500 || api.ErrorCode == codeIDInFlight) && api.ErrorCode != codeStoreFailed
	}
	return !tooLarge(err) && !errors.Is(err, nats.ErrConnectionClosed)
}
