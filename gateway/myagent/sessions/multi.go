// Package sessions binds a connection to the sessions that its client asks for.
//
// Acknowledgements are never answered and have a rate of their own: real clients send five a second for ever, before they
// have a session and after they have lost it. One that belongs to no session is counted
// (waggle_gateway_acks_dropped_total).
package sessions

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/myagent"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var (
	_ binding.Binding = (*Multi)(nil)
	_ edge.Recipient  = (*Multi)(nil)
	_ stream.Binding  = (*Multi)(nil)
)

// Config bounds the bindings of one gateway.
type Config struct {
	Heartbeat time.Duration // between two heartbeats of a session
	Sessions  int           // that one connection may hold
}

// Sessions are the bindings of one gateway. All methods may be called concurrently.
type Sessions struct {
	g   *binding.Gateway
	cfg Config

	mu   sync.Mutex
	open map[*Multi]struct{}
}

// New returns the bindings of a gateway.
func New(g *binding.Gateway, cfg Config) *Sessions {
	return &Sessions{g: g, cfg: cfg, open: map[*Multi]struct{}{}}
}

// Count returns the number of sessions on all connections.
func (s *Sessions) Count() (n int) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.open))
	s.mu.Unlock()
	for _, m := range all {
		m.mu.Lock()
		n += len(m.sessions)
		m.mu.Unlock()
	}
	return n
}

func (s *Sessions) add(m *Multi) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[m] = struct{}{}
}

func (s *Sessions) remove(m *Multi) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, m)
}

// Multi shows the sessions that its client asks for, and the target. It handles frames in
// order, one at a time.
type Multi struct {
	binding.Defaults
	of     *Sessions
	g      *binding.Gateway
	c      binding.Connection
	target *binding.Target // nil = none
	codec  *myagent.Codec  // of frames without a session
	id     id.Name         // of the connection
	reply  string          // subject of direct messages
	run    subject.Log     // of the target; zero = none
	room   chan struct{}   // the queue has room again

	mu       sync.Mutex
	sessions []*attached
	first    int // of the sessions that gets room next
	acks     map[ackKey]uint64
	own      map[string]bool // ids of the messages that came from the connection and are not echoed to it
	beaten   time.Time       // when the last heartbeats were sent

	// Of the goroutine that handles messages.
	ackRate *rate.Limiter             // of acknowledgements; they use up nothing else
	strange map[subject.Log]time.Time // logs that acknowledgements may not attach before the time
}

// attached is a session on a connection. It is immutable once it is shown.
type attached struct {
	log    subject.Log
	codec  *myagent.Codec
	client string // name of the device; empty = it gave none
	head   uint64 // where the log ended when it was attached
	stream *stream.Stream

	unopened *edge.Unopened // nil: the session existed when it was attached
	told     bool           // the client knows that the session is there, which its first event says
}

// seq returns the position that the client has at least, of a stream that has shown seq.
func (a *attached) seq(seq uint64) uint64 {
	if a.told {
		return max(seq, 1)
	}
	return seq
}

// Bind returns the binding of a connection.
func (s *Sessions) Bind(c binding.Connection, codec *myagent.Codec, target *binding.Target) *Multi {
	return &Multi{
		of: s, g: s.g, c: c, codec: codec, target: target, room: make(chan struct{}, 1), acks: map[ackKey]uint64{}, strange: map[subject.Log]time.Time{},
		ackRate: rate.NewLimiter(rate.Limit(s.g.MessageRate), s.g.MessageBurst),
	}
}

// Settle implements binding.Binding.
func (m *Multi) Settle() { m.c.TakeUp(func() {}) }

// logOf returns the log that frames with the id are about: the run that the connection
// watches, if that is its name, else a session.
func (m *Multi) logOf(session string) (subject.Log, error) {
	if m.run != (subject.Log{}) && m.target.Called(session) {
		return m.run, nil
	}
	entity, err := id.ParseEntity(session)
	if err != nil {
		return subject.Log{}, fault.New(fault.SessionExpired).Wrap(err)
	}
	return subject.Log{Tenant: m.c.Client().Principal().Tenant, Kind: id.KindSession, Entity: entity}, nil
}

// Name implements binding.Binding.
func (m *Multi) Name() string { return m.codec.Name() }

// Fail implements binding.Binding.
func (m *Multi) Fail(f *fault.Fault, now time.Time) []byte { return m.codec.Fail(f, now) }

// Principal implements edge.Recipient.
func (m *Multi) Principal() auth.Principal { return m.c.Client().Principal() }

// refuse tells the client that a frame has no effect.
func (m *Multi) refuse(req myagent.Request, err error) {
	f := m.c.FaultOf(err)
	m.g.Metrics.Faults.WithLabelValues(string(f.Code)).Inc()
	codec := m.codec
	if entity, err := id.ParseEntity(req.Session); err == nil {
		codec = m.codecFor(entity)
	}
	m.c.Force(transport.Text(codec.Refuse(m.g.Link(m.id), req.Session, req.Action, f)))
}

// put sends a frame that the client has asked for, however large, and waits until
// the queue has room for it. Only the goroutine that handles messages may call it.
func (m *Multi) put(frame *transport.Message) {
	for m.c.Send(frame) == 0 {
		select {
		case <-m.room:
		case <-m.c.Done():
			return
		}
	}
}

// find returns the session if the connection shows it.
func (m *Multi) find(entity id.Entity) *attached {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.sessions {
		if a.log.Entity == entity {
			return a
		}
	}
	return nil
}

// codecFor returns the variant for a session's frames.
func (m *Multi) codecFor(entity id.Entity) *myagent.Codec {
	if a := m.find(entity); a != nil {
		return a.codec
	}
	return m.codec
}

// in returns the variant for a session in the language; without one, the connection's own.
func (m *Multi) in(language string) *myagent.Codec {
	codec, _ := m.codec.In(language)
	return codec
}

// shown returns the sessions, beginning with another one each time.
func (m *Multi) shown() []*attached {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.sessions)
	if n == 0 {
		return nil
	}
	m.first = (m.first + 1) % n
	return slices.Concat(m.sessions[m.first:], m.sessions[:m.first])
}

// Room implements binding.Binding. The sessions take turns to get room first.
func (m *Multi) Room() {
	select {
	case m.room <- struct{}{}:
	default:
	}
	for _, a := range m.shown() {
		a.stream.Resume()
	}
}

// Tick implements binding.Binding: heartbeats are due, or clients are to be told of workers.
func (m *Multi) Tick(now time.Time) {
	m.tellWorkers()
	m.mu.Lock()
	due := !m.beaten.IsZero() && now.Sub(m.beaten) >= m.of.cfg.Heartbeat
	if due {
		m.beaten = now
	}
	m.mu.Unlock()
	if !due {
		return
	}
	all := m.shown()
	for _, a := range all {
		a.stream.Beat(func(seq uint64) []byte {
			return a.codec.Heartbeat(m.g.Link(m.id), a.log.Entity.String(), a.seq(seq))
		})
	}
	if len(all) == 0 {
		m.c.Send(transport.Text(m.codec.Heartbeat(m.g.Link(m.id), "", 0)))
	}
}

func (m *Multi) tellWorkers() {
	m.mu.Lock()
	all := slices.Clone(m.sessions)
	m.mu.Unlock()
	missing := m.g.WorkersMissing()
	for _, a := range all {
		a.stream.TellWorkers(missing)
	}
}

// Seen implements stream.Binding.
func (m *Multi) Seen(s *stream.Stream) {
	if a := m.find(s.Log.Entity); a != nil && a.unopened != nil {
		a.unopened.Seen()
	}
}

// Expired implements stream.Binding: what is gone is told by the state that it led to.
func (m *Multi) Expired(s *stream.Stream, first uint64) {
	codec := m.codecFor(s.Log.Entity)
	s.Skip(first, func() []byte { return codec.Expired(m.g.Link(m.id), s.Log.Entity.String(), first) })
	if s.Log.Kind != id.KindSession {
		s.Release(nil) // only sessions have a state that tells what has been
		return
	}
	// The connection is counted until its streams are closed, so Stop has not returned.
	m.g.Go(func() {
		state, err := m.state(m.g.Life, s.Log, myagent.Request{})
		if err != nil {
			m.g.Logger.Debug().Err(err).Stringer("log", s.Log).Msg("failed to read the state that replaces expired history")
			s.Release(nil)
			return
		}
		s.Release(func() []byte { return codec.Exported(m.g.Link(m.id), s.Log.Entity.String(), state) })
	})
}

// Failed implements stream.Binding: the session is not shown any more, others are.
func (m *Multi) Failed(s *stream.Stream, err error) {
	if errors.Is(err, eventlog.ErrClosed) {
		m.c.End(fault.New(fault.Draining))
		return
	}
	if errors.Is(err, eventlog.ErrBeyondEnd) {
		err = fault.New(fault.SessionExpired).Wrap(err)
	}
	m.refuse(myagent.Request{Action: myagent.Resume, Session: s.Log.Entity.String()}, err)
	m.forget(s)
}

// Deleted implements stream.Binding: a frame has said so, and the connection continues with its
// other sessions.
func (m *Multi) Deleted(s *stream.Stream) {
	m.forget(s)
	// The connection is counted until its streams are closed, so Stop has not returned. A stream
	// must not be closed by its own callback.
	m.g.Go(s.Close)
}

// Notice implements stream.Binding. It is said in the variant of the session.
func (m *Multi) Notice(s *stream.Stream, d event.NoticeData) {
	m.g.ShowNotice(m.c, m.codecFor(s.Log.Entity), s.Log, d)
}

// forget takes the session of a stream off the connection.
func (m *Multi) forget(s *stream.Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = slices.DeleteFunc(m.sessions, func(a *attached) bool { return a.stream == s })
}

// ackKey is who has read what.
type ackKey struct {
	log    subject.Log
	client string
}

// sees returns a fault for a session that the client may not see: the same as for an unknown one.
func (m *Multi) sees(ctx context.Context, log subject.Log) error {
	return m.c.Client().Sees(ctx, log, fault.New(fault.SessionExpired))
}

func (m *Multi) state(ctx context.Context, log subject.Log, req myagent.Request) (state event.StateExportedData, err error) {
	p := m.c.Client().Principal()
	switch {
	case !p.Owns(log):
		return state, fault.New(fault.SessionExpired)
	case log.Kind != id.KindSession:
		return state, fault.Newf(fault.UnknownType, "Runs of kind %s cannot be exported. Export a session instead.", log.Kind)
	}
	if err := m.sees(ctx, log); err != nil {
		return state, err
	}
	err = m.c.Client().Ask(ctx, edge.Request{Service: command.Session, Verb: command.Export, Repeats: true, In: command.ExportRequest{
		Tenant: log.Tenant, Session: log.Entity, Principal: p.Subject, All: m.c.Client().SeesAll(), History: req.History, MaxHistory: req.Max,
	}}, &state)
	return state, err
}
