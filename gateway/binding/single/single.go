// Package single binds a connection to one log: the session of its query, a new session, or
// the run that its path or query names.
package single

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
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
	*Viewer
	codec dialect.Codec

	greeted bool   // guarded by mu
	at      uint64 // position from which the stream began; guarded by mu
}

// New returns the binding of a connection with the target, nil = a session.
func New(g *binding.Gateway, c binding.Connection, codec dialect.Codec, target *binding.Target) *Single {
	s := &Single{Viewer: NewViewer(g, c, target), codec: codec}
	s.as = s
	return s
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
		if err := s.Link(s); err != nil {
			return err
		}
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
	s.Show(s, s.codec, after, nil)
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
	s.Log = subject.Log{Tenant: p.Tenant, Kind: id.KindSession}
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
	s.Log.Entity = entity
	var last eventlog.Cursor
	if last, s.unopened, err = s.c.Client().Ends(s.c.Context(), s.Log, fault.New(fault.SessionNotFound)); err != nil {
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
	if s.Log.Entity, err = edge.NameSession(s.c.Client().Principal(), event.Preferences{}); err != nil {
		return err
	}
	s.unopened = edge.NewUnopened(s.Log, event.Preferences{})
	return nil
}

// resolveTarget finds the target and the position from which the client wants to see it:
// the beginning, unless the query names another.
func (s *Single) resolveTarget() (after eventlog.Cursor, err error) {
	last, err := s.Find()
	if err != nil {
		return after, err
	}
	if s.c.Query().Has(binding.QueryAfter) {
		return binding.After(s.c, last)
	}
	return after, nil
}

func (s *Single) greet(stage dialect.Stage, seq uint64) {
	name := s.Log.Entity.String()
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
	return s.Forward(ctx, s.codec, message)
}

// Fail implements binding.Binding.
func (s *Single) Fail(f *fault.Fault, now time.Time) []byte { return s.codec.Fail(f, now) }

// Receive implements edge.Recipient.
func (s *Single) Receive(log subject.Log, e event.Event) []byte {
	if s.Refused(e) {
		return nil
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
	s.g.ShowNotice(s.c, s.codec, s.Log, d)
}
