package command

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// OnDead receives every command that was given up, at least once, before it leaves the queue. Its context ends at
// Stop; then, and after a crash, the call is repeated.
type OnDead func(ctx context.Context, c command.Command, reason string)

// DeadLetter is the record of a command that was given up.
type DeadLetter struct {
	Command    json.RawMessage `json:"command"` // as queued; a JSON string if it was not JSON
	Reason     string          `json:"reason"`
	Deliveries uint64          `json:"deliveries"`
	Time       time.Time       `json:"time"`
}

// deadRecorder gives commands up: it stores the dead letter, then tells the owner, and only then lets the message leave the
// queue.
//
// It does not use the server's advisory about exhausted deliveries, which comes at most once and only to current
// subscribers. Instead the consumers never exhaust deliveries, and the replica that gets a delivery beyond the limit
// gives the command up.
type deadRecorder struct {
	sender *Sender
	log    *zerolog.Logger
	onDead OnDead
}

// record stores a command as dead and tells its owner. After an error the message must stay on the queue. c is zero if
// the message does not hold a command.
func (u *deadRecorder) record(ctx context.Context, msg jetstream.Msg, c command.Command, reason string) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("read delivery: %w", err)
	}
	addr, err := u.sender.conn.Partitions().ParseCommand(msg.Subject())
	if err != nil { // without an address it has no subject for a record
		u.log.Error().Err(err).Msg("message dropped: not a command")
		return nil
	}
	body := msg.Data()
	if !json.Valid(body) {
		body, _ = json.Marshal(string(body)) // a string always has a JSON form
	}
	raw, err := json.Marshal(DeadLetter{Command: body, Reason: reason, Deliveries: meta.NumDelivered, Time: time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("encode dead letter: %w", err)
	}
	record := nats.NewMsg(addr.Dead())
	record.Data = raw
	dedupe := fmt.Sprintf("%s:%d.%d", u.sender.conn.Partitions().Command(addr), meta.Sequence.Stream, meta.Timestamp.UnixNano())
	if err := u.sender.publish(ctx, subject.StreamDead, record, jetstream.WithMsgID(dedupe)); err != nil {
		return fmt.Errorf("record dead letter: %w", err)
	}
	u.log.Error().Str("subject", msg.Subject()).Str("command", c.ID).Str("reason", reason).
		Uint64("deliveries", meta.NumDelivered).Msg("command dead-lettered")
	if c.ID != "" {
		u.tell(ctx, c, reason)
	}
	if ctx.Err() != nil { // the owner may have missed the call
		return context.Cause(ctx)
	}
	return nil
}

func (u *deadRecorder) tell(ctx context.Context, c command.Command, reason string) {
	if u.onDead == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			u.log.Error().Str("command", c.ID).Interface("panic", r).Bytes("stack", debug.Stack()).
				Msg("panic recovered in dead-letter report")
		}
	}()
	u.onDead(ctx, c, reason)
}
