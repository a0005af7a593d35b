package rpc

import (
	"context"
	"fmt"

	"github.com/waggle-dev/waggle/internal/bus"
)

// Gather sends a request to all processes that answer on a subject, and calls take with each answer until take returns true or the
// context ends. A process need not answer, and what answers is not a Server: it subscribes to the subject itself.
func Gather(ctx context.Context, c *bus.Conn, subject string, request []byte, take func(answer []byte) (all bool)) error {
	nc := c.NATS()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("subscribe to answers: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails if the connection is closed, which ends the subscription, too
	if err := nc.PublishRequest(subject, inbox, request); err != nil {
		return fmt.Errorf("ask on %s: %w", subject, err)
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return fmt.Errorf("receive answers on %s: %w", subject, err)
		}
		if take(m.Data) {
			return nil
		}
	}
}
