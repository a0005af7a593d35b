package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/waggle-dev/waggle/internal/telemetry"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// timerPause is the least time to the next firing: where the clocks of NATS and of
// this process differ, a timer fires early and is set again, and that must not
// become a busy loop.
const timerPause = 100 * time.Millisecond

// fired turns a due timer into a command, so that it takes its place in the log's order.
func (s *Service[S, E]) fired(ctx context.Context, t subject.Timer) error {
	now := s.cfg.Now()
	return s.Send(ctx, cmd.Command{
		ID: fmt.Sprintf("%s-%d", s.cfg.Fired, now.UnixMilli()), Service: s.cfg.Service, Verb: s.cfg.Fired, Tenant: t.Tenant, Key: t.Key,
	})
}

// Send sends a command in the service's name.
func (s *Service[S, E]) Send(ctx context.Context, c cmd.Command) error {
	c.Source, c.TraceParent = s.source, telemetry.Inject(ctx)
	if c.Time.IsZero() {
		c.Time = s.cfg.Now()
	}
	return s.deps.Commands.Send(ctx, c)
}

// SetTimer sets the log's one timer of this service. It does nothing for the zero time
// and for the time that the timer has already. Only the handler of a command may call it.
func (s *Service[S, E]) SetTimer(ctx context.Context, l *Log[S], due time.Time) error {
	if due.IsZero() || due.Equal(l.armed) {
		return nil
	}
	at := due
	if soon := s.cfg.Now().Add(timerPause); at.Before(soon) {
		at = soon
	}
	t := subject.Timer{Service: s.cfg.Service, Tenant: l.Ref.Tenant, Key: l.Ref.Entity, Name: s.cfg.Timer}
	if err := s.deps.Commands.SetTimer(ctx, t, at); err != nil {
		return err
	}
	l.armed = due
	return nil
}

// directID ends the ids of direct messages that answer a command. Clients see them.
const directID = ".aside"

// Direct answers the connection that has sent the command, if it waits for an answer. The
// message may get lost with the connection. Without data Direct does nothing.
func (s *Service[S, E]) Direct(ref subject.Log, c cmd.Command, data event.Data) {
	if data == nil || c.ReplyTo == "" {
		return
	}
	gateway, connection, err := subject.ParseReplyTo(c.ReplyTo)
	if err != nil {
		s.deps.Logger.Warn().Err(err).Str("command", c.ID).Msg("direct message dropped: invalid reply address")
		return
	}
	e, err := event.New(ref, cmp.Or(c.Request, c.ID)+directID, s.source, s.cfg.Now(), data)
	if err != nil {
		s.deps.Logger.Error().Err(err).Str("command", c.ID).Msg("failed to encode direct message")
		return
	}
	raw, err := json.Marshal(e)
	if err == nil {
		err = s.deps.Conn.NATS().Publish(subject.Direct(gateway, connection), raw)
	}
	if err != nil {
		s.deps.Logger.Warn().Err(err).Str("command", c.ID).Msg("failed to send direct message")
	}
}
