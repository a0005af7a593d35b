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

// DefaultConfirm is how long a gateway may take to confirm that a frame is in a socket's queue, which
// normally takes well under a millisecond. NATS reports a lost gateway at once; a stuck one must
// not delay the other tasks of the partition for long.
const DefaultConfirm = 3 * time.Second

// confirmed is the answer of a gateway that has accepted an event.
const confirmed = "+"

var (
	errAway    = errors.New("the agent has no connection")
	errRefused = errors.New("the gateway did not confirm")
)

// notifier tells agents about their tasks, by direct messages to their connections.
type notifier struct {
	conn     *bus.Conn
	registry *registry
	logger   zerolog.Logger
	patience time.Duration // with a gateway that has to confirm
}

// say tells an agent of an event and returns once its gateway has queued the frame.
// errAway says that the agent is not connected; any other error that it is not known
// to have been told.
func (m *notifier) say(ctx context.Context, t id.Tenant, agent string, e event.Event) (connection string, err error) {
	to, connection, raw, err := m.prepare(t, agent, e)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, m.patience)
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

// mention sends an event to a connected agent and does not wait for an answer.
func (m *notifier) mention(t id.Tenant, agent string, e event.Event) {
	to, _, raw, err := m.prepare(t, agent, e)
	if err == nil {
		err = m.conn.NATS().Publish(to, raw)
	}
	if err != nil {
		m.logger.Debug().Err(err).Str("agent", agent).Str("event", e.ID).Msg("fail to tell agent")
	}
}

// prepare returns the direct message and its address.
func (m *notifier) prepare(t id.Tenant, agent string, e event.Event) (to, via string, raw []byte, err error) {
	p, ok := m.registry.agent(t, agent)
	if !ok || !p.Online {
		return "", "", nil, errAway
	}
	gateway, connection, err := subject.ParseReplyTo(p.Gateway + "." + p.Connection)
	if err != nil {
		return "", "", nil, err
	}
	raw, err = encodeDirect(e)
	return subject.Direct(gateway, connection), p.Connection, raw, err
}

// encodeDirect encodes an event for a direct message, which has no seq.
func encodeDirect(e event.Event) ([]byte, error) {
	e.Sequence = 0
	return json.Marshal(e)
}

// repeat tells the connection that sent a command of events that answer it, and does not
// wait.
func (m *notifier) repeat(replyTo string, events []event.Event) error {
	gateway, connection, err := subject.ParseReplyTo(replyTo)
	if err != nil {
		return err
	}
	for _, e := range events {
		raw, err := encodeDirect(e)
		if err == nil {
			err = m.conn.NATS().Publish(subject.Direct(gateway, connection), raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
