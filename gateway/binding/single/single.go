// Package single binds a connection to one log: the session of its query, a new session, or
// the run that its path or query names.
package single

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var (
	_ binding.Binding = (*Single)(nil)
	_ edge.Recipient  = (*Single)(nil)
	_ stream.Binding  = (*Single)(nil)
)

// Single shows one log: the session of the query, a new session, or the target.
type Single struct {
	binding.Defaults
	viewer
	codec dialect.Codec

	greeted bool   // guarded by mu
	at      uint64 // position from which the stream began; guarded by mu
}

// New returns the binding of a connection with the target, nil = a session.
func New(g *binding.Gateway, c binding.Connection, codec dialect.Codec, target *binding.Target) *Single {
	s := &Single{viewer: viewer{g: g, c: c, target: target}, codec: codec}
	s.as = s
	return s
}

// viewer is the part that shows the log and sends the messages of the client.
type viewer struct {
	g      *binding.Gateway
	c      binding.Connection
	target *binding.Target
	log    subject.Log
	as     edge.Recipient
	id     id.Name // of the connection; zero before it is a recipient
	reply  string  // subject for answers to commands; empty where the log tells them

	unopened *edge.Unopened // the session of the log, unless it existed when the connection began
	opener   string         // subject for its refusal

	mu     sync.Mutex
	stream *stream.Stream // nil before Begin shows the log
}

// Name implements binding.Binding.
func (s *Single) Name() string { return s.codec.Name() }

// Begin implements binding.Binding.
func (s *Single) Begin() error {
	after, err := s.resolve()
	if err != nil {
		return err
	}
	if s.target != nil || s.unopened != nil {
		if err := s.link(s); err != nil {
			return err
		}
		s.opener = s.g.Recipients.ReplyTo(s.id)
	}
	if s.target != nil { // another client may answer first, and this one has to learn of it
		s.reply = s.opener
	}
	s.greet(dialect.Starting, after.Seq)
	s.mu.Lock()
	s.greeted, s.at = true, after.Seq
	s.mu.Unlock()
	s.c.Greeted()
	if s.unopened != nil && !s.g.Reachable() {
		return fault.New(fault.BusUnavailable)
	}
	s.c.Settle()
	f := s.show(s, s.codec)
	f.Watch(after, nil)
	s.shows(f)
	return nil
}

// resolve finds the log and the position from which the client wants to see it. A session
// of another principal is answered exactly as one that does not exist.
func (s *Single) resolve() (eventlog.Cursor, error) {
	if s.target != nil {
		return s.resolveTarget()
	}
	p, query := s.c.Client().Principal(), s.c.Query()
	resumes := query.Has(binding.QueryAfter)
	s.log = subject.Log{Tenant: p.Tenant, Kind: id.KindSession}
	if !query.Has(binding.QuerySession) {
		if resumes {
			return eventlog.Cursor{}, fault.Newf(fault.CursorInvalid, "after needs a session. Specify the session, too.").At(binding.QueryAfter)
		}
		return eventlog.Cursor{}, s.name()
	}
	entity, err := id.ParseEntity(query.Get(binding.QuerySession))
	if err != nil {
		return eventlog.Cursor{}, fault.New(fault.SessionNotFound).Wrap(err)
	}
	s.log.Entity = entity
	var last eventlog.Cursor
	if last, s.unopened, err = s.c.Client().Ends(s.c.Context(), s.log, fault.New(fault.SessionNotFound)); err != nil {
		return eventlog.Cursor{}, s.c.FaultOf(err)
	}
	if !resumes {
		return last, nil
	}
	return binding.After(s.c, last)
}

// name names a new session.
func (s *Single) name() (err error) {
	if !s.c.Client().MayAct() {
		return fault.Newf(fault.Forbidden, "You may watch sessions but not start them. Specify the session to watch.")
	}
	if s.log.Entity, err = edge.NameSession(s.c.Client().Principal(), event.Preferences{}); err != nil {
		return err
	}
	s.unopened = edge.NewUnopened(s.log, event.Preferences{})
	return nil
}

// resolveTarget finds the target and the position from which the client wants to see it:
// the beginning, unless the query names another.
func (s *Single) resolveTarget() (after eventlog.Cursor, err error) {
	var last eventlog.Cursor
	if s.log, last, s.unopened, err = binding.Find(s.c, s.target); err != nil {
		return after, err
	}
	if s.c.Query().Has(binding.QueryAfter) {
		return binding.After(s.c, last)
	}
	return after, nil
}

func (s *Single) greet(stage dialect.Stage, seq uint64) {
	name := s.log.Entity.String()
	if s.target != nil {
		name = s.target.Name
	}
	for _, p := range s.codec.Greet(dialect.Greeting{Stage: stage, SessionID: name, Now: s.g.Clock(), Seq: seq}) {
		s.c.Force(transport.Text(p))
	}
}

// Settle implements binding.Binding.
func (s *Single) Settle() {
	s.mu.Lock()
	greeted, at, f := s.greeted, s.at, s.stream
	s.mu.Unlock()
	if !greeted {
		return
	}
	s.c.TakeUp(func() {
		if f != nil {
			at = f.Position()
		}
		s.greet(dialect.Ready, at)
	})
}

// Handle implements binding.Binding.
func (s *Single) Handle(ctx context.Context, message []byte) error {
	return s.handle(ctx, s.codec, message)
}

// Fail implements binding.Binding.
func (s *Single) Fail(f *fault.Fault, now time.Time) []byte { return s.codec.Fail(f, now) }

// Receive implements edge.Recipient.
func (s *Single) Receive(log subject.Log, e event.Event) []byte {
	if s.unopened != nil && s.unopened.Refused(e) {
		return nil // the message that it was opened for is refused
	}
	s.g.ShowDirect(s.c, s.codec, log, e)
	return nil
}

// Expired implements stream.Binding.
func (s *Single) Expired(_ *stream.Stream, first uint64) {
	s.Seen(nil)
	s.c.Force(transport.Text(s.codec.Truncated(first, s.g.Clock())))
}

// Notice implements stream.Binding.
func (s *Single) Notice(_ *stream.Stream, d event.NoticeData) {
	s.g.ShowNotice(s.c, s.codec, s.log, d)
}

// link makes the connection a recipient.
func (v *viewer) link(as edge.Recipient) (err error) {
	if v.id, err = v.g.Recipients.Add(as); err != nil {
		return v.c.FaultOf(err)
	}
	return nil
}

// Seen implements stream.Binding.
func (v *viewer) Seen(*stream.Stream) {
	if v.unopened != nil {
		v.unopened.Seen()
	}
}

// show returns the stream of the log, which reports to b.
func (v *viewer) show(b stream.Binding, codec stream.Codec) *stream.Stream {
	return stream.New(v.g.Streams, stream.Options{
		Life: v.c.Context(), Log: v.log, Codec: codec, To: v.c, Slot: v.c.Slot(), Binding: b, Questions: v.c.Client().Questions(),
	})
}

// shows keeps the stream.
func (v *viewer) shows(s *stream.Stream) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stream = s
}

// shown returns the stream, nil before the log is shown.
func (v *viewer) shown() *stream.Stream {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stream
}

// handle sends the commands of a message, or tells the client why it does not.
func (v *viewer) handle(ctx context.Context, codec dialect.Codec, message []byte) error {
	err := v.forward(ctx, codec, message)
	if err != nil {
		v.c.Tell(v.c.FaultOf(err))
	}
	return err
}

// forward turns a message into commands and sends them.
func (v *viewer) forward(ctx context.Context, codec dialect.Codec, message []byte) error {
	if err := strictjson.Check(message); err != nil {
		return err
	}
	if p := v.c.Client().Principal(); !p.Owns(v.log) {
		return fault.New(fault.Forbidden)
	}
	intents, err := codec.Decode(message, dialect.Inbound{Kind: v.log.Kind, NewID: edge.NewID})
	if err != nil {
		return err
	}
	if v.target == nil {
		spoken(v.log.Entity, v.c.Client().Questions(), intents)
	}
	reply, err := v.repliesTo(intents)
	if err != nil {
		return err
	}
	cmds, err := binding.Commands(v.target, v.log, intents...)
	if err != nil || len(cmds) == 0 {
		return err
	}
	if v.unopened != nil {
		if err := v.unopened.Open(ctx, v.c, v.g.ReadyTimeout, v.opener, cmds...); err != nil {
			return err
		}
	}
	return v.c.Client().Do(ctx, reply, cmds...)
}

// repliesTo returns the subject for answers to the commands of intents. Another client may answer a question first, which no log
// tells this one.
func (v *viewer) repliesTo(intents []dialect.Intent) (string, error) {
	answers := slices.ContainsFunc(intents, func(i dialect.Intent) bool { _, is := i.Data.(dialect.Answer); return is })
	if v.reply != "" || !answers {
		return v.reply, nil
	}
	if v.id.IsZero() {
		if err := v.link(v.as); err != nil {
			return "", err
		}
	}
	return v.g.Recipients.ReplyTo(v.id), nil
}

// Principal implements edge.Recipient.
func (v *viewer) Principal() auth.Principal { return v.c.Client().Principal() }

// Room implements binding.Binding.
func (v *viewer) Room() {
	if s := v.shown(); s != nil {
		s.Resume()
	}
}

// Tick implements binding.Binding.
func (v *viewer) Tick(time.Time) {
	if s := v.shown(); s != nil {
		s.TellWorkers(v.g.WorkersMissing())
	}
}

// Close implements binding.Binding.
func (v *viewer) Close() {
	if s := v.shown(); s != nil {
		s.Close()
	}
	if !v.id.IsZero() {
		v.g.Recipients.Remove(v.id)
	}
}

// Failed implements stream.Binding.
func (v *viewer) Failed(_ *stream.Stream, err error) { binding.Lose(v.c, err) }

// Deleted implements stream.Binding: the connection has no other log to show.
func (v *viewer) Deleted(*stream.Stream) { v.c.End(fault.New(fault.SessionDeleted)) }
