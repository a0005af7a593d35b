package sessions

import (
	"context"
	"fmt"
	"slices"

	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// attach returns the session, which the socket shows from now on if it did not.
func (m *Multi) attach(ctx context.Context, log subject.Log) (*attached, error) {
	if a := m.find(log.Entity); a != nil {
		return a, nil
	}
	reply, after, err := m.locate(ctx, log, command.AttachRequest{Live: true})
	if err != nil {
		return nil, err
	}
	a := &attached{log: log, codec: m.in(reply.Language), head: reply.Head, unopened: reply.unopened}
	m.show(a, after, nil)
	return a, nil
}

// resume shows a session from where the client left it, instead of however it has
// been shown before: what is said first, what was missed, then a word that this was all,
// then what comes.
func (m *Multi) resume(ctx context.Context, log subject.Log, req myagent.Request, at myagent.Position, first ...func(*myagent.Codec) []byte) error {
	if !at.In(log.Entity.String()) {
		return fault.New(fault.CursorInvalid)
	}
	where := command.AttachRequest{EventID: at.EventID, ClientID: at.ClientID, Hash: at.Hash}
	if at.EventID == "" {
		where.After = at.Seq
	}
	reply, after, err := m.locate(ctx, log, where)
	if err != nil {
		return err
	}
	a := &attached{log: log, codec: m.in(reply.Language), client: at.ClientID, head: reply.Head, unopened: reply.unopened, told: reply.told}
	m.show(a, after, func(o *stream.Opening) {
		for _, say := range first {
			o.Say(func() []byte { return say(a.codec) })
		}
		m.sayLost(o, a, reply.AttachReply)
		o.Replay(m.replay(a, req, reply.AttachReply))
	})
	return nil
}

// replay says how the client is shown what it missed of a session.
func (m *Multi) replay(a *attached, req myagent.Request, reply command.AttachReply) stream.Replay {
	session := a.log.Entity.String()
	r := stream.Replay{
		Head: reply.Head, Merge: req.Merge,
		Replayed: func(count int, at eventlog.Cursor) []byte {
			if at.Seq = a.seq(at.Seq); at.Seq == 1 {
				at.Stream = 0 // as in the frame of the first event, which is older than its place
			}
			return a.codec.Replayed(m.g.Link(m.id), session, count, at.Seq, at.String(), reply.HashMatched)
		},
	}
	if req.Batch {
		r.Batch = func(events []event.Event) []byte { return a.codec.Batch(m.g.Link(m.id), session, events) }
	}
	return r
}

// goOn shows a session from behind a position that a client has acknowledged. Nothing
// says that what was missed has been shown: an acknowledgement has no answer.
func (m *Multi) goOn(ctx context.Context, log subject.Log, at myagent.Position) (*attached, error) {
	where := command.AttachRequest{EventID: at.EventID}
	if at.EventID == "" {
		where.After = at.Seq
	}
	reply, after, err := m.locate(ctx, log, where)
	if err != nil {
		return nil, err
	}
	if reply.unopened != nil { // an acknowledgement shows nothing that is not there
		return nil, fault.New(fault.SessionExpired)
	}
	a := &attached{log: log, codec: m.in(reply.Language), client: at.ClientID, head: reply.Head}
	m.show(a, after, func(o *stream.Opening) { m.sayLost(o, a, reply.AttachReply) })
	return a, nil
}

// sayLost tells of a history that has expired, and what it led to.
func (m *Multi) sayLost(o *stream.Opening, a *attached, reply command.AttachReply) {
	session := a.log.Entity.String()
	if reply.FirstSeq > 0 {
		o.Say(func() []byte { return a.codec.Expired(m.g.Link(m.id), session, reply.FirstSeq) })
	}
	if reply.FirstSeq > 0 && reply.Exported != nil {
		o.Say(func() []byte { return a.codec.Exported(m.g.Link(m.id), session, *reply.Exported) })
	}
}

// restore makes a session of a signed state, which keeps its id, and shows it. Positions in
// the session's former log are invalid in the new one.
func (m *Multi) restore(ctx context.Context, req myagent.Request) error {
	p := m.c.Client().Principal()
	var reply command.ImportReply
	in := command.ImportRequest{Tenant: p.Tenant, Principal: p.Subject, All: p.Has(auth.RoleOperator), Signed: req.Signed}
	err := m.g.Signer.Import(&in)
	if err == nil {
		err = m.c.Client().Ask(ctx, edge.Request{Service: command.Session, Verb: command.Import, In: in, Changes: true}, &reply)
	}
	m.c.Client().RecordState(audit.Imported, subject.Log{Kind: id.KindSession, Entity: reply.Session}, err)
	if err != nil {
		return err
	}
	at := req.Resume
	if reply.Restored || !at.In(reply.Session.String()) {
		at.Seq, at.EventID = new(uint64), ""
	}
	log := subject.Log{Tenant: p.Tenant, Kind: id.KindSession, Entity: reply.Session}
	if reply.Restored || reply.Exported == nil { // an event says so
		return m.resume(ctx, log, req, at)
	}
	return m.resume(ctx, log, req, at, func(codec *myagent.Codec) []byte {
		return codec.Restored(m.g.Link(m.id), log.Entity.String(), event.SessionRestoredData{
			Principal: p.Subject, ExportedAt: reply.Exported.At, ExportedSeq: reply.Exported.Seq,
			Stage: reply.Exported.Stage, MessageCount: reply.Exported.MessageCount,
		})
	})
}

// export shows the state of a session.
func (m *Multi) export(ctx context.Context, log subject.Log, req myagent.Request) error {
	state, err := m.state(ctx, log, req)
	m.c.Client().RecordState(audit.Exported, log, err)
	if err != nil {
		return err
	}
	m.put(transport.Text(m.codecFor(log.Entity).Exported(m.g.Link(m.id), log.Entity.String(), state)))
	return nil
}

// locate asks where the socket's client stands in a session. The call waits 10 s,
// longer than the election after a lost leader; until then the client's next frames
// wait, because they are handled in order.
func (m *Multi) locate(ctx context.Context, log subject.Log, req command.AttachRequest) (reply located, after eventlog.Cursor, err error) {
	p := m.c.Client().Principal()
	if !p.Owns(log) {
		return reply, after, fault.New(fault.SessionExpired)
	}
	if err := m.sees(ctx, log); err != nil {
		return reply, after, err
	}
	if err := m.roomFor(log); err != nil {
		return reply, after, err
	}
	if log.Kind != id.KindSession {
		reply.AttachReply, after, err = m.locateRun(ctx, log, req)
		return reply, after, err
	}
	req.Tenant, req.Session, req.Principal, req.All = log.Tenant, log.Entity, p.Subject, m.c.Client().SeesAll()
	if err = m.ask(ctx, req, &reply); err != nil {
		return reply, after, err
	}
	if reply.unopened != nil {
		return reply, eventlog.Cursor{}, nil
	}
	if after, err = eventlog.ParseCursor(reply.After); err != nil {
		return reply, after, fmt.Errorf("the session service's answer for %s: %w", log, err)
	}
	if reply.FirstSeq > after.Seq+1 {
		after = eventlog.Cursor{Seq: reply.FirstSeq - 1}
	}
	return reply, after, nil
}

// roomFor returns a fault if the socket may not show one session more.
func (m *Multi) roomFor(log subject.Log) error {
	if m.find(log.Entity) != nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sessions) >= m.of.cfg.Sessions {
		return fault.Newf(fault.RateLimited, "This connection has %d sessions, which is the limit. Open another connection for more.", len(m.sessions))
	}
	return nil
}

// show puts a session on the socket, in the place of what it showed of it before.
// first is called before anything else is shown, and must not block; nil = nothing comes
// first.
func (m *Multi) show(a *attached, after eventlog.Cursor, first func(*stream.Opening)) {
	a.stream = stream.New(m.g.Streams, stream.Options{
		Life: m.c.Context(), Log: a.log, Codec: a.codec, To: m.c, Slot: m.c.Slot(), Binding: m, Questions: m.c.Client().Questions(),
		Watches: m.c.Client().Watches(),
		Spare:   m.g.QueueBytes / m.of.cfg.Sessions, // of all together as much as the queue
		Hides:   m.hides(a), Pieces: true, Joins: a.codec.Gathers(),
	})
	if old := m.find(a.log.Entity); old != nil {
		old.stream.Close()
		if a.client == "" {
			a.client = old.client
		}
	}
	a.stream.Watch(after, func(o *stream.Opening) {
		m.mu.Lock()
		m.sessions = append(slices.DeleteFunc(m.sessions, func(o *attached) bool { return o.log == a.log }), a)
		m.mu.Unlock()
		if first != nil {
			first(o)
		}
	})
}

// showRun shows the run that the query names, as if the client had attached it.
func (m *Multi) showRun(after eventlog.Cursor) error {
	if m.run == (subject.Log{}) {
		return nil
	}
	reply, at, err := m.locate(m.c.Context(), m.run, command.AttachRequest{After: &after.Seq})
	if err != nil {
		return m.c.FaultOf(err)
	}
	a := &attached{log: m.run, codec: m.in(reply.Language), head: reply.Head, unopened: reply.unopened}
	m.show(a, at, func(o *stream.Opening) { m.sayLost(o, a, reply.AttachReply) })
	return nil
}
