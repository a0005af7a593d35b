package multi

import (
	"cmp"
	"context"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// located says where a client stands in a session.
type located struct {
	command.AttachReply
	unopened *binding.Unopened // the session is to be opened; nil = it exists
	told     bool              // the client has its first event
}

// locateUnopened says where a client stands in a session that may still be opened. Of one that
// may not, missing is the fault.
func (m *Multi) locateUnopened(ctx context.Context, log subject.Log, req command.AttachRequest, missing *fault.Fault) (reply located, after eventlog.Cursor, err error) {
	u, ok := m.g.Awaited(m.c.Principal(), log)
	if !ok {
		return reply, after, missing
	}
	if last, err := m.g.Log.Last(ctx, log); err != nil || last.Seq > 0 {
		return reply, after, cmp.Or[error](err, missing) // it has existed
	}
	if req.EventID != "" {
		if after, err = eventlog.ParseCursor(req.EventID); err != nil {
			return reply, after, fault.New(fault.CursorInvalid).At("last_event_id").Wrap(err)
		}
	} else if req.After != nil {
		after.Seq = *req.After
	}
	if after.Seq > 1 {
		return reply, after, fault.New(fault.CursorInvalid).At("last_seq")
	}
	u.By(req.ClientID)
	reply.Language, reply.told, reply.unopened = u.Preferences().Language, after.Seq == 1, u
	if a := m.find(log.Entity); a != nil && a.unopened != nil { // it knows all preferences
		reply.unopened = a.unopened
	}
	return reply, eventlog.Cursor{}, nil
}

// hides returns which events the client of the session shows itself, or has been shown.
func (m *Multi) hides(a *attached) func(event.Event) bool {
	if !a.told {
		return m.ownEcho
	}
	return func(e event.Event) bool { return e.Type == event.SessionCreated && e.Sequence == 1 || m.ownEcho(e) }
}
