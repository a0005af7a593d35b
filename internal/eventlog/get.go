package eventlog

import (
	"context"

	"github.com/nats-io/nats.go"
)

// DirectGet sends the body of a direct get to any replica of a stream, and calls visit for each answer until visit returns
// false. It is for streams that are derived from logs; Read reads a log. It fails with nats.ErrTimeout,
// nats.ErrNoResponders or nats.ErrDisconnected.
func (s *Store) DirectGet(ctx context.Context, stream string, body []byte, room int, visit func(*nats.Msg) bool) error {
	return s.replies.Many(ctx, &nats.Msg{Subject: directGet(stream), Data: body}, room, quiet, visit)
}
