package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// openID is the id of the command that makes a session: asking twice makes one.
const openID = "open"

// Parameters of the query of a socket that shows one session.
const (
	querySession = "session" // the one to go on with; absent = a new one
	queryAfter   = "after"   // the last event seen; absent = the newest
)

var (
	_ manner         = (*one)(nil)
	_ stream.Binding = (*one)(nil)
)

// one is the manner of a socket that shows one log: the session of its query, a new
// session, or the run that it watches.
type one struct {
	c       *conn
	session subject.Log // or the log of the run
	created bool        // the session was made for this socket
	id      id.Name     // of the connection, if it watches a run or opens a session
	reply   string      // and where asides to it go
	opener  string      // and where it is told that its session cannot be opened

	mu     sync.Mutex
	exists bool   // the session has a log
	at     uint64 // where the stream begins
	show   *stream.Stream
}

func newOne(c *conn) *one { return &one{c: c} }

// begin implements manner.
func (o *one) begin() error {
	after, err := o.resolve()
	if err != nil {
		return err
	}
	if o.c.watch != nil || o.created {
		if err := o.link(o); err != nil {
			return err
		}
	}
	o.greet(dialect.Starting, after.Seq)
	o.mu.Lock()
	o.exists, o.at = !o.created, after.Seq
	o.mu.Unlock()
	o.c.greeted()
	if o.created {
		if err := o.create(); err != nil {
			return o.c.faultOf(err)
		}
	}
	o.c.settle()
	f := o.stream(o)
	f.Watch(after)
	o.mu.Lock()
	o.show = f
	o.mu.Unlock()
	return nil
}

// stream returns the stream of the log, which tells b of what becomes of it.
func (o *one) stream(b stream.Binding) *stream.Stream {
	return stream.New(o.c.ctx, o.c.s.streams, stream.Options{
		Log: o.session, Codec: o.c.codec, To: o.c.sock, Slot: o.c.slot, Binding: b,
	})
}

// resolve makes out the session of the socket and the position from which it wants
// to see the log. A session of somebody else is answered exactly as one that does
// not exist.
func (o *one) resolve() (eventlog.Cursor, error) {
	c, p := o.c, o.c.who()
	if c.watch != nil {
		return o.resolveRun()
	}
	resumes := c.query.Has(queryAfter)
	o.session = subject.Log{Tenant: p.Tenant, Kind: id.KindSession}
	if !c.query.Has(querySession) {
		o.created = true
		if resumes {
			return eventlog.Cursor{}, fault.Newf(fault.CursorInvalid, "after needs a session. Name the session that it is a position in.").At(queryAfter)
		}
		if !c.mayAct() {
			return eventlog.Cursor{}, fault.Newf(fault.Forbidden, "You may watch sessions and not begin any. Name the one to watch.")
		}
		entity, err := id.ParseEntity(newID())
		o.session.Entity = entity
		return eventlog.Cursor{}, err
	}
	entity, err := id.ParseEntity(c.query.Get(querySession))
	if err != nil {
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound).Wrap(err)
	}
	if o.session.Entity = entity; !p.Owns(o.session) {
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound)
	}
	last, err := c.s.dep.Log.Last(c.ctx, o.session)
	switch {
	case err != nil:
		return eventlog.Cursor{}, c.faultOf(err)
	case last.Seq == 0:
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound)
	case !resumes:
		return last, nil
	}
	return c.after(last)
}

// resolveRun makes out the run that the socket watches and the position from which it
// wants to see the log: the beginning, unless it says another.
func (o *one) resolveRun() (after eventlog.Cursor, err error) {
	log, last, err := o.c.find(o.c.watch)
	if err != nil {
		return after, err
	}
	if o.session = log; o.c.query.Has(queryAfter) {
		return o.c.after(last)
	}
	return after, nil
}

// after reads the position in a log of which last is the end.
func (c *conn) after(last eventlog.Cursor) (eventlog.Cursor, error) {
	after, err := eventlog.ParseCursor(c.query.Get(queryAfter))
	if err != nil || after.Seq > last.Seq {
		return eventlog.Cursor{}, fault.New(fault.CursorInvalid).At(queryAfter).Wrap(err)
	}
	return after, nil
}

// link gives the socket an address, under which as hears what services say to it: of a run
// that many may answer, who has come too late has to learn of it.
func (o *one) link(as hearer) (err error) {
	if o.id, err = o.c.s.link(as); err != nil {
		return o.c.faultOf(err)
	}
	if o.opener = subject.ReplyTo(o.c.s.name, o.id); o.c.watch != nil {
		o.reply = o.opener
	}
	return nil
}

// who implements hearer.
func (o *one) who() auth.Principal { return o.c.who() }

// whisper implements hearer.
func (o *one) whisper(log subject.Log, e event.Event) {
	if d, err := event.As[event.CommandRefusedData](e); err == nil && o.created && d.CommandID == openID {
		o.c.end(fault.Newf(fault.Code(d.Code), "%s", d.Message).At(d.Field))
		return
	}
	o.c.whisper(o.c.codec, log, e)
}

// create asks for the new session.
func (o *one) create() error {
	cmd, err := o.c.opening(o.session, event.Preferences{})
	if err != nil {
		return err
	}
	return o.c.send(o.c.ctx, o.c.who(), o.opener, cmd)
}

// opening returns the command that makes a session.
func (c *conn) opening(session subject.Log, p event.Preferences) (command.Command, error) {
	data, err := json.Marshal(command.OpenSession{Dialect: c.dialect.Name(), Preferences: p})
	if err != nil {
		return command.Command{}, fmt.Errorf("encode %s: %w", command.Open, err)
	}
	return command.Command{
		ID: openID, Service: command.Session, Verb: command.Open, Tenant: session.Tenant, Key: session.Entity,
		Principal: c.who().Subject, Time: c.s.dep.Clock().UTC(), Data: data,
	}, nil
}

func (o *one) greet(stage dialect.Stage, seq uint64) {
	name := o.session.Entity.String()
	if o.c.watch != nil {
		name = o.c.watch.name
	}
	for _, p := range o.c.codec.Greet(dialect.Greeting{
		Stage: stage, SessionID: name, Now: o.c.s.dep.Clock(), Seq: seq,
	}) {
		o.c.sock.Force(transport.Text(p))
	}
}

// settle implements manner. Messages are taken up, and that is said, once the
// session exists: an id that the client knows can be come back to.
func (o *one) settle() {
	o.mu.Lock()
	exists, at, f := o.exists, o.at, o.show
	o.mu.Unlock()
	if !exists {
		return
	}
	o.c.takeUp(func() {
		if f != nil {
			at = f.Position()
		}
		o.greet(dialect.Ready, at)
	})
}

// handle implements manner.
func (o *one) handle(ctx context.Context, message []byte) error {
	err := o.forward(ctx, o.c.who(), message)
	if err != nil {
		o.c.tell(o.c.faultOf(err))
	}
	return err
}

// forward turns a message into commands and sends them.
func (o *one) forward(ctx context.Context, p auth.Principal, message []byte) error {
	if err := strictjson.Check(message); err != nil {
		return err
	}
	if !p.Owns(o.session) {
		return fault.New(fault.Forbidden)
	}
	cmds, err := o.c.codec.Decode(message, dialect.Inbound{
		Session: o.session, Principal: p.Subject, NewID: newID, Now: o.c.s.dep.Clock(),
	})
	if err == nil {
		err = o.c.aim(o.session, cmds)
	}
	if err != nil {
		return err
	}
	return o.c.send(ctx, p, o.reply, cmds...)
}

// shown returns the stream, nil before the log is shown.
func (o *one) shown() *stream.Stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.show
}

// low implements manner.
func (o *one) low() {
	if f := o.shown(); f != nil {
		f.Resume()
	}
}

// tick implements manner.
func (o *one) tick(time.Time) {
	if f := o.shown(); f != nil {
		f.TellWorkers(o.c.s.workers.missing.Load())
	}
}

// close implements manner.
func (o *one) close() {
	if f := o.shown(); f != nil {
		f.Close()
	}
	if !o.id.IsZero() {
		o.c.s.unlink(o.id)
	}
}

// Seen implements stream.Binding: a session that is seen exists.
func (o *one) Seen() {
	o.mu.Lock()
	fresh := !o.exists
	o.exists = true
	o.mu.Unlock()
	if fresh {
		o.c.settle()
	}
}

// Expired implements stream.Binding.
func (o *one) Expired(_ *stream.Stream, first uint64) {
	o.Seen()
	o.c.sock.Force(transport.Text(o.c.codec.Truncated(first, o.c.s.dep.Clock())))
}

// Failed implements stream.Binding.
func (o *one) Failed(_ *stream.Stream, err error) { o.c.lost(err) }

// Deleted implements stream.Binding: the socket has nothing else to show.
func (o *one) Deleted(*stream.Stream) { o.c.end(fault.New(fault.SessionDeleted)) }

// Notice implements stream.Binding.
func (o *one) Notice(_ *stream.Stream, d event.NoticeData) { o.c.notice(o.c.codec, o.session, d) }

// lost ends the socket, because what it shows cannot be read any more.
func (c *conn) lost(err error) {
	switch {
	case errors.Is(err, eventlog.ErrClosed):
		c.end(fault.New(fault.Draining))
	case errors.Is(err, eventlog.ErrBeyondEnd):
		c.end(fault.New(fault.CursorInvalid))
	default:
		c.end(c.faultOf(err))
	}
}
