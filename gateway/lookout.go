package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/rpc"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var (
	_ manner         = (*lookout)(nil)
	_ stream.Binding = (*lookout)(nil)
	_ hearer         = (*lookout)(nil)
)

// afterCurrent stands for the position where what is on began, or for now if nothing is.
const afterCurrent = "current"

// lookout is the manner of a socket whose path or query names what it shows: a team, a
// member of one, or any other run, which is there before the socket is.
type lookout struct {
	one
	codec   dialect.Teams
	speaker string // the member that speaks for what is shown; empty: none does; guarded by mu
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

// speaker returns the coordinator of the team that is shown.
func (s start) speaker() string {
	if s.view == nil || s.view.Agent != nil {
		return ""
	}
	return s.view.Definition.Coordinator
}

// fail returns the frame that tells of a fault: in the name of the member that speaks for
// what is shown, which any client knows.
func (l *lookout) fail(f *fault.Fault, now time.Time) []byte {
	l.mu.Lock()
	by := l.speaker
	l.mu.Unlock()
	if by == "" {
		return l.codec.Fail(f, now)
	}
	return l.codec.FailBy(by, f, now)
}

// whisper implements hearer. What a team refuses is said in the name of its speaker.
func (l *lookout) whisper(log subject.Log, e event.Event) {
	l.mu.Lock()
	by := l.speaker
	l.mu.Unlock()
	if d, err := event.As[event.CommandRefusedData](e); err == nil && log.Kind == id.KindTeam && d.AgentName == "" {
		d.AgentName = by
		if raw, err := json.Marshal(d); err == nil {
			e.Data = raw
		}
	}
	l.c.whisper(l.codec, log, e)
}

// Expired implements stream.Binding. Nothing is missing where the client has asked for no
// position: it is shown what there is.
func (l *lookout) Expired(s *stream.Stream, first uint64) {
	if l.c.query.Has(queryAfter) || l.c.watch.byQuery {
		l.one.Expired(s, first)
	}
}

// begin implements manner.
func (l *lookout) begin() error {
	ctx, cancel := l.c.lifetime()
	defer cancel()
	if err := l.link(l); err != nil {
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
	l.exists, l.at, l.speaker = true, from.after.Seq, from.speaker()
	l.mu.Unlock()
	l.c.greeted()
	l.c.settle()
	now := l.c.s.dep.Clock()
	at := dialect.Link{ConnectionID: l.id.String(), Now: now, Uptime: now.Sub(l.c.s.born)}
	f := l.stream(l)
	f.WatchBehind(l.codec.Welcome(at, l.c.watch.name, from.view), from.after, from.skip)
	l.mu.Lock()
	l.show = f
	l.mu.Unlock()
	return nil
}

// settle implements manner.
func (l *lookout) settle() { l.c.takeUp(func() {}) }

// resolve makes out what the socket shows and from where on: from a position, if the
// client has one. Otherwise a run that is named by the query is shown from its beginning,
// and one that is named by the path from as far back as what a client may have missed that
// knows no positions: it may have been away for a moment.
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
	if w.kind == id.KindTeam || w.kind == id.KindMember {
		if from.view, err = l.attach(ctx); err != nil {
			return from, err
		}
	}
	switch {
	case l.c.query.Get(queryAfter) == afterCurrent && from.view != nil:
		from.after.Seq = from.view.From
	case l.c.query.Has(queryAfter):
		return l.resume(ctx, from)
	case !w.byQuery:
		from.after.Seq = from.view.Recent
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
