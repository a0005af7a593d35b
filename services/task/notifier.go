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
	"github.com/waggle-dev/waggle/services/task/registry"
)

// defaultConfirm is how long a gateway may take to confirm that a frame is in a socket's queue, which
// normally takes well under a millisecond. NATS reports a lost gateway at once; a stuck one must
// not delay the other tasks of the partition for long.
const defaultConfirm = 3 * time.Second

// confirmed is the answer of a gateway that has accepted an event.
const confirmed = "+"

// errAway means that an agent has no connection.
var errAway = errors.New("the agent has no connection")

var errRefused = errors.New("the gateway did not confirm")

// notifier tells agents about their tasks, by direct messages to their connections.
//
// The gateway confirms that a connection has taken the work. Work without a confirmation counts as not given, and goes to
// another agent. If only the confirmation was lost, two agents may work on a task; the attempt fences the second result.
//
// It is safe for concurrent use.
type notifier struct {
	conn    *bus.Conn
	agents  *registry.Registry
	logger  zerolog.Logger
	confirm time.Duration // how long a gateway may take
}

// say tells an agent of an event and returns once its gateway has queued the frame.
// It returns errAway for an agent without a connection; after any other error
// it is not known whether the agent was told.
func (n *notifier) say(ctx context.Context, t id.Tenant, agent string, e event.Event) (connection string, err error) {
	to, connection, raw, err := n.prepare(t, agent, e)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, n.confirm)
	defer cancel()
	answer, err := n.conn.NATS().RequestWithContext(ctx, to, raw)
	if err != nil {
		return "", err
	}
	if string(answer.Data) != confirmed {
		return "", errRefused
	}
	return connection, nil
}

// mention sends an event to a connected agent and does not wait for an answer.
func (n *notifier) mention(t id.Tenant, agent string, e event.Event) {
	to, _, raw, err := n.prepare(t, agent, e)
	if err == nil {
		err = n.conn.NATS().Publish(to, raw)
	}
	if err != nil {
		n.logger.Debug().Err(err).Str("agent", agent).Str("event", e.ID).Msg("failed to notify agent")
	}
}

// prepare returns the direct message and its address.
func (n *notifier) prepare(t id.Tenant, agent string, e event.Event) (to, via string, raw []byte, err error) {
	p, ok := n.agents.Agent(t, agent)
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
func (n *notifier) repeat(replyTo string, events []event.Event) error {
	gateway, connection, err := subject.ParseReplyTo(replyTo)
	if err != nil {
		return err
	}
	for _, e := range events {
		raw, err := encodeDirect(e)
		if err == nil {
			err = n.conn.NATS().Publish(subject.Direct(gateway, connection), raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
