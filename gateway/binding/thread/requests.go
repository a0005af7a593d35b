package thread

import (
	"context"

	wire "github.com/waggle-dev/waggle/proto-schemas/agui"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/dialect/agui"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// History returns a page of the messages of a thread.
func (t *Threads) History(ctx context.Context, c Client, at Place, before string, limit int) (page wire.History, err error) {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return page, err
	}
	err = t.states.at(ctx, at.Log, at.Variant, last, func(base *agui.Thread, _ eventlog.Cursor) error {
		var ok bool
		if page.Messages, page.Before, ok = base.Messages(before, limit); !ok {
			return fault.Newf(fault.CursorInvalid, "before is not the id of a message that the thread still has.").At("before")
		}
		return nil
	})
	return page, err
}

// Cancel stops a run of the thread, or one task of it.
func (t *Threads) Cancel(ctx context.Context, c Client, at Place, in wire.Cancel) error {
	last, err := t.exists(ctx, c, at)
	if err != nil {
		return err
	}
	var i dialect.Intent
	err = t.states.at(ctx, at.Log, at.Variant, last, func(base *agui.Thread, _ eventlog.Cursor) (err error) {
		i, err = base.Stops(in)
		return err
	})
	if err != nil {
		return err
	}
	cmds, err := t.g.Commands(c, nil, at.Log, i)
	if err != nil {
		return err
	}
	return c.Command(ctx, "", cmds...)
}
