package thread

import (
	"context"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/agui/fold"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// History returns a page of the messages of a thread.
func (t *Threads) History(ctx context.Context, c *edge.Client, at Place, before string, limit int) (page wire.History, err error) {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return page, err
	}
	var found, kept bool
	err = t.folded(ctx, at, last, func(base *fold.Thread, _ eventlog.Cursor) error {
		page.Messages, page.Before, found = base.Messages(before, limit)
		kept = found && (len(page.Messages) == limit || !base.Cut())
		if !found && !base.Knows(before) {
			return fault.Newf(fault.CursorInvalid, "before must be the id of a message in the thread.").At("before")
		}
		return nil
	})
	if err != nil || kept || before == "" {
		return page, err
	}
	page.Messages, page.Before, err = t.older(ctx, at, last, before, limit)
	return page, err
}

// older returns a page of messages that are older than what a fold keeps.
func (t *Threads) older(ctx context.Context, at Place, last eventlog.Cursor, before string, limit int) (page []wire.Message, next string, err error) {
	th := fold.Until(at.Log.Kind, at.Variant, before)
	if _, err := t.read(ctx, at, eventlog.Cursor{}, last.Seq, th.Take); err != nil {
		return nil, "", err
	}
	page, next, kept := th.Messages(before, limit)
	if !kept { // the message was discarded
		page, next, _ = th.Messages("", limit)
	}
	return page, next, nil
}

// Cancel stops a run of the thread, or one task of it.
func (t *Threads) Cancel(ctx context.Context, c *edge.Client, at Place, in wire.Cancel) error {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return err
	}
	var i dialect.Intent
	err = t.folded(ctx, at, last, func(base *fold.Thread, _ eventlog.Cursor) (err error) {
		i, err = base.Stops(in)
		return err
	})
	if err != nil {
		return err
	}
	cmds, err := binding.Commands(nil, at.Log, i)
	if err != nil {
		return err
	}
	return c.Do(ctx, "", cmds...)
}
