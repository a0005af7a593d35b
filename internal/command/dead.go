package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// DeadLetter is the record of a command that was given up.
type DeadLetter struct {
	Command    json.RawMessage `json:"command"`
	Reason     string          `json:"reason"`
	Deliveries uint64          `json:"deliveries"`
	Time       time.Time       `json:"time"`
}

// undertaker gives commands up: the record first, then the owner is told, then the
// message is taken off the queue.
type undertaker struct {
	conn   *bus.Conn
	sender *Sender
	log    zerolog.Logger
	onDead func(context.Context, command.Command, string)
}

// bury reports an error when the record could not be stored; the message then stays
// on the queue and is buried at its next delivery.
func (u *undertaker) bury(ctx context.Context, msg jetstream.Msg, c command.Command, reason string) error {
	meta, err := msg.Metadata()
	if err != nil {
		return fmt.Errorf("bury a command: %w", err)
	}
	if err := u.record(ctx, msg.Subject(), msg.Data(), reason, meta.NumDelivered, meta.Sequence.Stream); err != nil {
		return err
	}
	if u.onDead != nil && !c.Service.IsZero() {
		u.onDead(ctx, c, reason)
	}
	return msg.Term()
}

func (u *undertaker) record(ctx context.Context, subj string, body []byte, reason string, deliveries, seq uint64) error {
	if !json.Valid(body) {
		body, _ = json.Marshal(string(body)) // a string always has a JSON form
	}
	raw, err := json.Marshal(DeadLetter{Command: body, Reason: reason, Deliveries: deliveries, Time: time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("encode dead letter: %w", err)
	}
	addr, err := subject.ParseCommand(subj)
	if err != nil {
		return fmt.Errorf("bury a command: %w", err)
	}
	u.log.Error().Str("subject", subj).Str("reason", reason).Uint64("deliveries", deliveries).Msg("a command was given up")
	m := nats.NewMsg(addr.Dead())
	m.Data = raw
	return u.sender.publish(ctx, m, jetstream.WithMsgID(fmt.Sprintf("dead:%d", seq)))
}

// advisory is what the server says of a message that it will not deliver again.
type advisory struct {
	Stream     string `json:"stream"`
	Consumer   string `json:"consumer"`
	StreamSeq  uint64 `json:"stream_seq"`
	Deliveries uint64 `json:"deliveries"`
}

// watch buries the messages of the consumer that the server has stopped delivering:
// all their handlers died before they could say anything.
func (u *undertaker) watch(consumer string) (stop func(), err error) {
	subj := "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES." + subject.StreamCommands + "." + consumer
	sub, err := u.conn.NATS().QueueSubscribe(subj, "dead-letters", func(m *nats.Msg) {
		ctx, cancel := context.WithTimeout(context.Background(), sendBudget)
		defer cancel()
		if err := u.exhume(ctx, m.Data); err != nil {
			u.log.Error().Err(err).Msg("a command that is not delivered any more could not be recorded")
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch for exhausted deliveries: %w", err)
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

func (u *undertaker) exhume(ctx context.Context, raw []byte) error {
	var a advisory
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("decode advisory: %w", err)
	}
	s, err := u.conn.JS().Stream(ctx, subject.StreamCommands)
	if err != nil {
		return fmt.Errorf("read the exhausted command: %w", err)
	}
	msg, err := s.GetMsg(ctx, a.StreamSeq)
	if err != nil {
		return fmt.Errorf("read the exhausted command: %w", err)
	}
	reason := fmt.Sprintf("delivered %d times without an answer", a.Deliveries)
	if err := u.record(ctx, msg.Subject, msg.Data, reason, a.Deliveries, a.StreamSeq); err != nil {
		return err
	}
	var c command.Command
	if u.onDead != nil && json.Unmarshal(msg.Data, &c) == nil {
		u.onDead(ctx, c, reason)
	}
	return s.DeleteMsg(ctx, a.StreamSeq)
}
