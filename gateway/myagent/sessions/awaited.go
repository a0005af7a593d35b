package sessions

import (
	"context"
	"errors"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// located says where a client stands in a session.
type located struct {
	command.AttachReply
	unopened *edge.Unopened // the session is to be opened; nil = it exists
	told     bool           // the client has its first event
}

// ask asks the session service where a client stands. It looks for a session that is to be opened if the
// service knows none. One that another connection opens between the two looks is asked for again.
func (m *Multi) ask(ctx context.Context, req command.AttachRequest, reply *located) error {
	for again := false; ; again = true {
		err := m.c.Client().Ask(ctx, edge.Request{Service: command.Session, Verb: command.Attach, In: req, Repeats: true}, &reply.AttachReply)
		missing, ok := errors.AsType[*fault.Fault](err)
		if !ok || missing.Code != fault.SessionExpired {
			return err
		}
		log := subject.Log{Tenant: req.Tenant, Kind: id.KindSession, Entity: req.Session}
		u, ok := m.g.Awaited(m.c.Client().Principal(), log)
		if !ok {
			return missing
		}
		last, err := m.g.Log.Last(ctx, log)
		switch {
		case err != nil:
			return err
		case last.Seq == 0:
			return m.await(u, req, reply)
		case again: // it has ended
			return missing
		}
	}
}

// await says where a client stands in a session that is to be opened.
func (m *Multi) await(u *edge.Unopened, req command.AttachRequest, reply *located) error {
	var at eventlog.Cursor
	if req.EventID != "" {
		var err error
		if at, err = eventlog.ParseCursor(req.EventID); err != nil {
			return fault.New(fault.CursorInvalid).Wrap(err)
		}
	} else if req.After != nil {
		at.Seq = *req.After
	}
	if at.Seq > 1 {
		return fault.New(fault.CursorInvalid)
	}
	u.By(req.ClientID)
	reply.Language, reply.told, reply.unopened = u.Preferences().Language, at.Seq == 1, u
	if a := m.find(req.Session); a != nil && a.unopened != nil { // it knows all preferences
		reply.unopened = a.unopened
	}
	return nil
}

// hides returns which events the client of the session shows itself, or has been shown.
func (m *Multi) hides(a *attached) func(event.Event) bool {
	if !a.told {
		return m.ownEcho
	}
	return func(e event.Event) bool { return e.Type == event.SessionCreated && e.Sequence == 1 || m.ownEcho(e) }
}
