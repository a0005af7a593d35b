package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Headers of an atomic batch, and the error about one that has a message which the stream has already: see ADR-50 of NATS.
const (
	batchID     = "Nats-Batch-Id"
	batchSeq    = "Nats-Batch-Sequence"
	batchCommit = "Nats-Batch-Commit"

	codeBatchRepeats jetstream.ErrorCode = 10201
)

// SendAll sends the commands of one request of a principal: all of them are stored, in their order, or none. Each is known by its
// own id, so a repeat of the request, or of a part of it, stores what is missing. Errors are those of Send.
func (s *Sender) SendAll(ctx context.Context, cmds ...command.Command) (err error) {
	if len(cmds) == 0 {
		return nil
	}
	for _, c := range cmds {
		if err := check(c); err != nil {
			return err
		}
	}
	if s.enter != nil {
		leave, err := s.enter(cmds[0].Tenant)
		if err != nil {
			return err
		}
		defer leave()
	}
	ctx, span := telemetry.Start(ctx, "send "+label(cmds[0]), trace.SpanKindProducer, telemetry.SystemNATS, telemetry.MessagingSend,
		telemetry.KeyDestination.String(cmds[0].Service.String()), telemetry.KeyMessageID.String(cmds[0].ID))
	defer func() { telemetry.End(span, err) }()
	msgs := make([]*nats.Msg, len(cmds))
	for i, c := range cmds {
		if msgs[i], err = s.message(ctx, c); err != nil {
			return err
		}
	}
	if len(msgs) == 1 {
		return s.publish(ctx, subject.StreamCommands, msgs[0])
	}
	return s.publishAll(ctx, msgs)
}

func (s *Sender) publishAll(caller context.Context, msgs []*nats.Msg) error {
	ctx, cancel := context.WithTimeout(caller, sendBudget)
	defer cancel()
	_, err := bus.Insist(ctx, s.conn, repeatable, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.batch(ctx, msgs)
	})
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == codeBatchRepeats {
		for _, m := range msgs { // those that the stream has are stored once
			if err := s.publish(ctx, subject.StreamCommands, m); err != nil {
				return err
			}
		}
		return nil
	}
	return s.stored(caller, subject.StreamCommands, err)
}

// batch publishes the messages as one. The server answers each, so that it is known which one it refuses, and stores all with
// the last.
func (s *Sender) batch(ctx context.Context, msgs []*nats.Msg) error {
	name := uuid.NewString()
	for i, m := range msgs {
		part := nats.NewMsg(m.Subject)
		part.Data = m.Data
		maps.Copy(part.Header, m.Header)
		part.Header.Set(batchID, name)
		part.Header.Set(batchSeq, strconv.Itoa(i+1))
		last := i == len(msgs)-1
		if last {
			part.Header.Set(batchCommit, "1")
		}
		answer, err := s.conn.NATS().RequestMsgWithContext(ctx, part)
		if err != nil {
			return err
		}
		if len(answer.Data) == 0 && !last {
			continue
		}
		var ack struct {
			Error *jetstream.APIError `json:"error"`
			Count int                 `json:"count"`
		}
		switch err := json.Unmarshal(answer.Data, &ack); {
		case err != nil:
			return fmt.Errorf("read the server's answer to a batch: %w", err)
		case ack.Error != nil:
			return ack.Error
		case last && ack.Count != len(msgs):
			return fmt.Errorf("the server has stored %d of %d messages of a batch", ack.Count, len(msgs))
		}
	}
	return nil
}
