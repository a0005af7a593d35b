// Package teams serves the connections that show a team, a member of one, or any other run, in the protocol of agent teams.
package teams

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/binding/single"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/team"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var (
	_ binding.Binding = (*Team)(nil)
	_ edge.Recipient  = (*Team)(nil)
	_ stream.Binding  = (*Team)(nil)
)

// afterCurrent stands for the position where the active run began, or for now if none is
// active.
const afterCurrent = "current"

// Team shows the target of a connection: a team, a member of one, or any other run. The log
// exists before the connection does.
type Team struct {
	binding.Defaults
	*single.Viewer
	g      *binding.Gateway
	c      binding.Connection
	codec  *team.Codec
	target *binding.Target

	speaker atomic.Value // string: the member that speaks for the team; empty: none does
}

// New returns the binding of a connection with the target.
func New(g *binding.Gateway, c binding.Connection, codec *team.Codec, target *binding.Target) *Team {
	return &Team{Viewer: single.NewViewer(g, c, target), g: g, c: c, codec: codec, target: target}
}

// start is the state in which a client begins to watch.
type start struct {
	view  *command.TeamAttachReply // nil: the run belongs to no team
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

// Name implements binding.Binding.
func (t *Team) Name() string { return t.codec.Name() }

// Begin implements binding.Binding.
func (t *Team) Begin() error {
	ctx, cancel := t.lifetime()
	defer cancel()
	if err := t.Link(t); err != nil {
		return err
	}
	from, err := t.resolve(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return err // the client has gone
	case err != nil:
		return t.c.FaultOf(err)
	}
	t.speaker.Store(from.speaker())
	t.c.Greeted()
	t.c.Settle()
	t.Show(t, t.codec, from.after, func(o *stream.Opening) {
		first := t.codec.Welcome(t.At(), t.target.Name, from.view)
		if from.view != nil && from.after.Seq < from.view.Head {
			// A status of now ends, for the original's client, the answers that are still to be shown.
			o.Follow(from.view.Head, first[1:])
			first = first[:1]
		}
		for _, text := range first {
			o.Say(func() []byte { return text })
		}
		o.Skip(from.skip)
	})
	return nil
}

// lifetime returns a context that ends with the connection.
func (t *Team) lifetime() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.c.Context())
	go func() {
		select {
		case <-t.c.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// resolve finds the log and the position from which to show it: the position of the query,
// if it has one. Otherwise a run that the query names is shown from its beginning, and one
// that the path names from so far back that a client which knows no positions may have been
// away for a moment.
func (t *Team) resolve(ctx context.Context) (from start, err error) {
	if t.target == nil {
		return from, fault.Newf(fault.RunNotFound, "Specify the log to show: a team's id at the end of the path, or watch=<kind>/<id>.")
	}
	t.Log = t.target.Log(t.c.Client().Principal().Tenant)
	if t.target.ByQuery {
		if _, err = t.Find(); err != nil { //nolint:contextcheck // it looks with the life of the connection
			return from, err
		}
	}
	if t.target.Kind == id.KindTeam || t.target.Kind == id.KindMember {
		if from.view, err = t.attach(ctx); err != nil {
			return from, err
		}
	}
	query := t.c.Query()
	switch {
	case query.Get(binding.QueryAfter) == afterCurrent && from.view != nil:
		from.after.Seq = from.view.From
	case query.Has(binding.QueryAfter):
		return t.resume(ctx, from)
	case !t.target.ByQuery:
		from.after.Seq = from.view.Recent
	}
	return from, nil
}

// attach asks for the view with which a viewer begins. The call waits 10 s, longer than the
// election after a lost leader.
func (t *Team) attach(ctx context.Context) (*command.TeamAttachReply, error) {
	p := t.c.Client().Principal()
	var reply command.TeamAttachReply
	err := t.c.Client().Ask(ctx, edge.Request{Service: command.Team, Verb: command.AttachTeam, Repeats: true, In: command.TeamAttachRequest{
		Tenant: p.Tenant, Principal: p.Subject, All: t.c.Client().SeesAll(), Kind: t.Log.Kind, ID: t.Log.Entity,
	}}, &reply)
	if f, ok := errors.AsType[*fault.Fault](err); ok && t.target.ByQuery && (f.Code == fault.TeamNotFound || f.Code == fault.AgentNotFound) {
		err = fault.New(fault.RunNotFound).Wrap(err)
	}
	if err != nil {
		return nil, err
	}
	return &reply, nil
}

// resume reads the position of the last frame that the client has.
func (t *Team) resume(ctx context.Context, from start) (start, error) {
	last, err := t.g.Log.Last(ctx, t.Log)
	if err != nil {
		return from, err
	}
	position, err := strconv.ParseUint(t.c.Query().Get(binding.QueryAfter), 10, 64)
	if err != nil {
		return from, fault.New(fault.CursorInvalid).At(binding.QueryAfter).Wrap(err)
	}
	if position > 0 {
		from.after.Seq, from.skip = team.Place(position)
	}
	needed := from.after.Seq
	if from.skip > 0 {
		needed++ // the event of which the client has a part
	}
	if needed > last.Seq {
		return from, fault.New(fault.CursorInvalid).At(binding.QueryAfter)
	}
	return from, nil
}

// Settle implements binding.Binding.
func (t *Team) Settle() { t.c.TakeUp(func() {}) }

// Handle implements binding.Binding.
func (t *Team) Handle(ctx context.Context, message []byte) error {
	return t.Forward(ctx, t.codec, message)
}

// Fail implements binding.Binding. The member that speaks for the team tells the fault, as
// any client of the protocol expects.
func (t *Team) Fail(f *fault.Fault, now time.Time) []byte {
	if by := t.speaks(); by != "" {
		return t.codec.FailBy(by, f, now)
	}
	return t.codec.Fail(f, now)
}

// speaks returns the member that speaks for the team.
func (t *Team) speaks() string {
	name, _ := t.speaker.Load().(string) // empty before the log is found
	return name
}

// Receive implements edge.Recipient. The speaker of a team tells its refusals.
func (t *Team) Receive(log subject.Log, e event.Event) []byte {
	if t.Refused(e) {
		return nil
	}
	if d, err := event.As[event.CommandRefusedData](e); err == nil && log.Kind == id.KindTeam && d.AgentName == "" {
		d.AgentName = t.speaks()
		if raw, err := json.Marshal(d); err == nil {
			e.Data = raw
		}
	}
	t.g.ShowDirect(t.c, t.codec, log, e)
	return nil
}

// Expired implements stream.Binding. A client that asked for no position misses no event: it
// is shown the events that are kept.
func (t *Team) Expired(_ *stream.Stream, first uint64) {
	if t.c.Query().Has(binding.QueryAfter) || t.target.ByQuery {
		t.c.Force(transport.Text(t.codec.Truncated(first, t.g.Clock())))
	}
}

// Notice implements stream.Binding.
func (t *Team) Notice(_ *stream.Stream, d event.NoticeData) {
	t.g.ShowNotice(t.c, t.codec, t.Log, d)
}
