package task

import (
	"context"
	"errors"

	"github.com/waggle-dev/waggle/internal/eventlog"
	cmd "github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
	"github.com/waggle-dev/waggle/services/ledger"
	"github.com/waggle-dev/waggle/services/task/inbox"
)

// repeats answers requests of participants that come again.
type repeats struct {
	*base

	notifier *notifier
}

// answer answers a repeated request of a participant from the log, with the ids of the first
// answer.
func (r *repeats) answer(ctx context.Context, h *ledger.Log[life], c cmd.Command, seqs []uint64) error {
	events := make([]event.Event, 0, len(seqs))
	for _, seq := range seqs {
		e, err := r.eventAt(ctx, h.Ref, seq)
		if _, gone := errors.AsType[*eventlog.TruncatedError](err); gone {
			continue
		}
		if err != nil {
			return err
		}
		if c.Verb == cmd.MessageTask { // its first answer was the copy in the client's log
			if e, err = inbox.Copy(inbox.LogOf(h.Ref.Tenant, h.State().Task().ClientID), e); err != nil {
				return err
			}
		}
		events = append(events, e)
	}
	if err := r.notifier.repeat(c.ReplyTo, events); err != nil {
		r.deps.Logger.Warn().Err(err).Str("command", c.ID).Msg("failed to answer repeated request")
	}
	return nil
}

var errFound = errors.New("found")

// eventAt reads one event of a log.
func (r *repeats) eventAt(ctx context.Context, log subject.Log, seq uint64) (found event.Event, err error) {
	err = r.deps.Log.Read(ctx, log, eventlog.Cursor{Seq: seq - 1}, func(e *eventlog.Entry) error {
		found = e.Event
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}
