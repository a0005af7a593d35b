package gateway

import (
	"context"
	"errors"
	"strconv"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

var _ manner = (*lookout)(nil)

// lookout is the manner of a socket whose path or query names what it shows: a team, a
// member of one, or any other run, which is there before the socket is.
type lookout struct {
	one
	codec dialect.Teams
}

func newLookout(c *conn, codec dialect.Teams) *lookout {
	return &lookout{one: one{c: c}, codec: codec}
}

// start is where and with what a lookout begins.
type start struct {
	view  *command.TeamAttachReply // nil: the run is no team's
	after eventlog.Cursor
	skip  int // frames of the next event that the client has
}

// begin implements manner.
func (l *lookout) begin() error {
	ctx, cancel := l.c.lifetime()
	defer cancel()
	if err := l.link(); err != nil {
		return err
	}
	from, err := l.resolve(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return err // nobody is there any more
	case err != nil:
		return l.c.faultOf(err)
	}
	l.mu.Lock()
	l.exists, l.at = true, from.after.Seq
	l.mu.Unlock()
	l.c.greeted()
	l.c.settle()
	now := l.c.s.dep.Clock()
	at := dialect.Link{ConnectionID: l.id.String(), Now: now, Uptime: now.Sub(l.c.s.born)}
	f := newFeed(l.c, l.session, l.codec, &l.one)
	f.watchFrom(l.codec.Welcome(at, l.c.watch.name, from.view), from.after, from.skip)
	l.mu.Lock()
	l.feed = f
	l.mu.Unlock()
	return nil
}

// settle implements manner.
func (l *lookout) settle() { l.c.takeUp(func() {}) }

// resolve makes out what the socket shows and from where on. A run that is named by the
// path is shown from where what is on began; one that is named by the query from its
// beginning; either from a position, if the client has one.
func (l *lookout) resolve(ctx context.Context) (from start, err error) {
	w := l.c.watch
	if w == nil {
		return from, fault.Newf(fault.RunNotFound, "Say what to show: the id of a team at the end of the path, or watch=<kind>/<id>.")
	}
	l.session = w.log(l.c.who().Tenant)
	if w.byQuery {
		if _, _, err := l.c.find(w); err != nil {
			return from, err
		}
	}
	if w.kind == id.KindTeam || w.kind == id.KindAgent {
		if from.view, err = l.attach(ctx); err != nil {
			return from, err
		}
	}
	switch {
	case l.c.query.Has(queryAfter):
		return l.resume(ctx, from)
	case !w.byQuery:
		from.after.Seq = from.view.From
	}
	return from, nil
}

// attach asks for what a viewer has to know first. The call waits 10 s, longer than the
// election after a lost leader.
func (l *lookout) attach(ctx context.Context) (*command.TeamAttachReply, error) {
	p := l.c.who()
	var reply command.TeamAttachReply
	err := rpc.Call(ctx, l.c.s.dep.Conn, command.Team, command.AttachTeam, command.TeamAttachRequest{
		Tenant: p.Tenant, Principal: p.Subject, Kind: l.session.Kind, ID: l.session.Entity,
	}, &reply)
	if f, ok := errors.AsType[*fault.Fault](err); ok && l.c.watch.byQuery && (f.Code == fault.TeamNotFound || f.Code == fault.AgentNotFound) {
		err = fault.New(fault.RunNotFound).Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	return &reply, nil
}

// resume reads the position of the last frame that the client has.
func (l *lookout) resume(ctx context.Context, from start) (start, error) {
	last, err := l.c.s.dep.Log.Last(ctx, l.session)
	if err != nil {
		return from, err
	}
	position, err := strconv.ParseUint(l.c.query.Get(queryAfter), 10, 64)
	if err != nil {
		return from, fault.New(fault.CursorInvalid).At(queryAfter).Wrap(err)
	}
	if position > 0 {
		from.after.Seq, from.skip = l.codec.Place(position)
	}
	needed := from.after.Seq
	if from.skip > 0 {
		needed++ // the event of which the client has a part
	}
	if needed > last.Seq {
		return from, fault.New(fault.CursorInvalid).At(queryAfter)
	}
	return from, nil
}
