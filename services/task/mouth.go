package task

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// confirmWait is how long a gateway may take to say that a frame is in a socket's
// queue, which takes it well under a millisecond. One that is gone is told by NATS at
// once; one that is stuck must not hold up the other tasks of the partition for long.
const confirmWait = 3 * time.Second

// confirmed is what a gateway answers.
const confirmed = "+"

var (
	errAway    = errors.New("the agent has no connection")
	errRefused = errors.New("the gateway did not confirm")
)

// mouth tells agents what they have to know, on their connections.
type mouth struct {
	conn   *bus.Conn
	crowd  *crowd
	logger zerolog.Logger
}

// say tells an agent of an event and returns once its gateway has queued the frame.
// errAway says that the agent is not connected; any other error that it is not known
// to have been told.
func (m *mouth) say(ctx context.Context, t id.Tenant, agent string, e event.Event) (connection string, err error) {
	to, connection, raw, err := m.prepare(t, agent, e)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, confirmWait)
	defer cancel()
	answer, err := m.conn.NATS().RequestWithContext(ctx, to, raw)
	if err != nil {
		return "", err
	}
	if string(answer.Data) != confirmed {
		return "", errRefused
	}
	return connection, nil
}

// mention tells an agent of an event if it is there, and does not wait.
func (m *mouth) mention(t id.Tenant, agent string, e event.Event) {
	to, _, raw, err := m.prepare(t, agent, e)
	if err == nil {
		err = m.conn.NATS().Publish(to, raw)
	}
	if err != nil {
		m.logger.Debug().Err(err).Str("agent", agent).Str("event", e.ID).Msg("an agent was not told")
	}
}

// prepare returns what is said, and where.
func (m *mouth) prepare(t id.Tenant, agent string, e event.Event) (to, via string, raw []byte, err error) {
	p, ok := m.crowd.agent(t, agent)
	if !ok || !p.Online {
		return "", "", nil, errAway
	}
	gateway, connection, err := subject.ParseReplyTo(p.Gateway + "." + p.Connection)
	if err != nil {
		return "", "", nil, err
	}
	raw, err = aside(e)
	return subject.Direct(gateway, connection), p.Connection, raw, err
}

// aside encodes an event that is said, and not shown as a part of a log.
func aside(e event.Event) ([]byte, error) {
	e.Sequence = 0
	return json.Marshal(e)
}

// repeat tells the connection that sent a command of events that answer it, and does not
// wait.
func (m *mouth) repeat(replyTo string, events []event.Event) error {
	gateway, connection, err := subject.ParseReplyTo(replyTo)
	if err != nil {
		return err
	}
	for _, e := range events {
		raw, err := aside(e)
		if err == nil {
			err = m.conn.NATS().Publish(subject.Direct(gateway, connection), raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
