package edge

import (
	"context"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// visible: a client has nothing done to a session that it does not see. The services of teams and tasks decide about theirs
// themselves: agents report on tasks that they do not see.
func visible(ctx context.Context, c *Client, a *Act) error {
	if a.Request { // its service looks
		return nil
	}
	seen, err := c.e.Sight.SeesCommand(ctx, c.Principal(), a.Command)
	if err == nil && !seen {
		err = fault.New(fault.SessionNotFound)
	}
	return err
}

// SeesAll reports whether the client sees every session, team and task of its tenant.
func (c *Client) SeesAll() bool { return c.e.Sight.SeesAll(c.Principal()) }

// Sees returns the fault missing for a log that the client does not see.
func (c *Client) Sees(ctx context.Context, log subject.Log, missing *fault.Fault) error {
	seen, err := c.e.Sight.Sees(ctx, c.Principal(), log)
	if err == nil && !seen {
		err = missing
	}
	return err
}

// Ends returns the end of a log that the client sees and is about to watch. A session without events is returned if it may still be opened, and
// any other log as the fault missing.
func (c *Client) Ends(ctx context.Context, log subject.Log, missing *fault.Fault) (last eventlog.Cursor, u *Unopened, err error) {
	if err = c.Sees(ctx, log, missing); err != nil {
		return last, nil, err
	}
	if last, err = c.e.Log.Attend(ctx, log); err != nil || last.Seq > 0 {
		return last, nil, err
	}
	u, ok := c.e.Awaited(c.Principal(), log)
	if !ok {
		return last, nil, missing
	}
	return last, u, nil
}

// SeesOwner reports whether the client sees a log of its tenant whose owner is known.
func (c *Client) SeesOwner(owner string) bool { return c.e.Sight.SeesOwner(c.Principal(), owner) }
