package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var (
	_ manner         = (*many)(nil)
	_ stream.Binding = (*many)(nil)
)

// many is the manner of a socket that shows as many sessions as its client asks
// for. Its frames are handled in order, one at a time.
type many struct {
	c     *conn
	codec dialect.Sessions // of frames without a session
	id    id.Name          // of the connection
	reply string           // where asides to it go
	run   subject.Log      // that the query names; zero = none
	room  chan struct{}    // the queue has room again

	mu       sync.Mutex
	sessions []*attached
	first    int // of the sessions that gets room next
	acks     map[ackKey]uint64
	own      map[string]bool // ids of the messages that came from the socket and are not echoed to it
	beaten   time.Time       // when the last heartbeats were sent

	// Of the goroutine that handles messages.
	ackRate *rate.Limiter             // of acknowledgements; they use up nothing else
	strange map[subject.Log]time.Time // logs that acknowledgements may not attach before the time
}

// attached is a session on a socket. It is changed by nobody.
type attached struct {
	log    subject.Log
	codec  dialect.Sessions
	client string // the device, as it has named itself
	head   uint64 // where the log ended when it was attached
	stream *stream.Stream
}

func newMany(c *conn, codec dialect.Sessions) *many {
	return &many{
		c: c, codec: codec, room: make(chan struct{}, 1), acks: map[ackKey]uint64{}, strange: map[subject.Log]time.Time{},
		ackRate: rate.NewLimiter(rate.Limit(c.s.cfg.MessageRate), c.s.cfg.MessageBurst),
	}
}

// begin implements manner.
func (m *many) begin() (err error) {
	after, err := m.resolveRun()
	if err != nil {
		return err
	}
	if err := m.readEcho(); err != nil {
		return err
	}
	if m.id, err = m.c.s.link(m); err != nil {
		return m.c.faultOf(err)
	}
	m.reply = subject.ReplyTo(m.c.s.name, m.id)
	m.c.sock.Force(transport.Text(m.codec.Connected(m.at())))
	m.mu.Lock()
	m.beaten = m.c.s.dep.Clock()
	m.mu.Unlock()
	m.c.greeted()
	m.c.settle()
	return m.showRun(after)
}

// at returns what frames may say of the socket.
func (m *many) at() dialect.Link {
	now := m.c.s.dep.Clock()
	return dialect.Link{ConnectionID: m.id.String(), Now: now, Uptime: now.Sub(m.c.s.born)}
}

// settle implements manner.
func (m *many) settle() { m.c.takeUp(func() {}) }

// handle implements manner.
func (m *many) handle(ctx context.Context, message []byte) error {
	req := dialect.Request{Action: dialect.Act}
	err := strictjson.Check(message)
	if err == nil {
		req, err = m.codec.Request(message)
	}
	if req.Action == dialect.Ack {
		m.acknowledge(ctx, req, err)
		return nil
	}
	if err == nil {
		err = m.do(ctx, req, message)
	}
	if err != nil {
		m.refuse(req, err)
	}
	return err
}

func (m *many) do(ctx context.Context, req dialect.Request, message []byte) error {
	switch req.Action {
	case dialect.Open:
		return m.open(ctx, req)
	case dialect.Import:
		return m.restore(ctx, req)
	}
	log, err := m.logOf(req.Session)
	if err != nil {
		return err
	}
	switch req.Action {
	case dialect.Resume:
		return m.resume(ctx, log, req, req.Resume)
	case dialect.Export:
		return m.export(ctx, log, req)
	default:
		return m.act(ctx, log, message)
	}
}

// logOf returns the log that frames with the id are about: the run that the socket
// watches, if that is its name, else a session.
func (m *many) logOf(session string) (subject.Log, error) {
	if m.run != (subject.Log{}) && m.c.watch.called(session) {
		return m.run, nil
	}
	entity, err := id.ParseEntity(session)
	if err != nil {
		return subject.Log{}, fault.New(fault.SessionExpired).Wrap(err)
	}
	return subject.Log{Tenant: m.c.who().Tenant, Kind: id.KindSession, Entity: entity}, nil
}

// act sends what a frame asks for to a session, and shows the session from then on.
func (m *many) act(ctx context.Context, log subject.Log, message []byte) error {
	p := m.c.who()
	if !p.Owns(log) {
		return fault.New(fault.SessionExpired)
	}
	cmds, err := m.codecFor(log.Entity).Decode(message, dialect.Inbound{
		Session: log, Principal: p.Subject, NewID: newID, Now: m.c.s.dep.Clock(),
	})
	if err != nil || len(cmds) == 0 {
		return err
	}
	if !m.c.mayAct() {
		return fault.New(fault.Forbidden)
	}
	if err := m.c.aim(log, cmds); err != nil {
		return err
	}
	if _, err := m.attach(ctx, log); err != nil {
		return err
	}
	m.noteOwn(cmds)
	return m.c.send(ctx, p, m.reply, cmds...)
}

// refuse tells the client that a frame of its has no effect.
func (m *many) refuse(req dialect.Request, err error) {
	f := m.c.faultOf(err)
	m.c.s.met.faults.WithLabelValues(string(f.Code)).Inc()
	codec := m.codec
	if entity, err := id.ParseEntity(req.Session); err == nil {
		codec = m.codecFor(entity)
	}
	m.c.sock.Force(transport.Text(codec.Refuse(m.at(), req.Session, req.Action, f)))
}

// put sends a frame that the client has asked for, however large, and waits until
// the queue has room for it. Only the goroutine that handles messages may call it.
func (m *many) put(frame *transport.Message) {
	for m.c.sock.Send(frame) == 0 {
		select {
		case <-m.room:
		case <-m.c.sock.Done():
			return
		}
	}
}

// find returns the session if the socket shows it.
func (m *many) find(entity id.Entity) *attached {
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
func (m *many) codecFor(entity id.Entity) dialect.Sessions {
	if a := m.find(entity); a != nil {
		return a.codec
	}
	return m.codec
}

// in returns the variant for a session in the language; without one, the socket's own.
func (m *many) in(language string) dialect.Sessions {
	codec, _ := m.codec.In(language)
	return codec
}

// shown returns the sessions, beginning with another one each time.
func (m *many) shown() []*attached {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.sessions)
	if n == 0 {
		return nil
	}
	m.first = (m.first + 1) % n
	return slices.Concat(m.sessions[m.first:], m.sessions[:m.first])
}

// low implements manner. No session is always the last to get the room there is.
func (m *many) low() {
	select {
	case m.room <- struct{}{}:
	default:
	}
	for _, a := range m.shown() {
		a.stream.Resume()
	}
}

// tick implements manner: heartbeats are due, or clients are to be told of workers.
func (m *many) tick(now time.Time) {
	m.tellWorkers()
	m.mu.Lock()
	due := !m.beaten.IsZero() && now.Sub(m.beaten) >= m.c.s.cfg.Heartbeat
	if due {
		m.beaten = now
	}
	m.mu.Unlock()
	if !due {
		return
	}
	all := m.shown()
	for _, a := range all {
		a.stream.Beat(func(seq uint64) []byte { return a.codec.Heartbeat(m.at(), a.log.Entity.String(), seq) })
	}
	if len(all) == 0 {
		m.c.sock.Send(transport.Text(m.codec.Heartbeat(m.at(), "", 0)))
	}
}

func (m *many) tellWorkers() {
	m.mu.Lock()
	all := slices.Clone(m.sessions)
	m.mu.Unlock()
	missing := m.c.s.workers.missing.Load()
	for _, a := range all {
		a.stream.TellWorkers(missing)
	}
}

// close implements manner.
func (m *many) close() {
	for _, a := range m.shown() {
		a.stream.Close()
	}
	if m.id.IsZero() {
		return
	}
	m.c.s.unlink(m.id)
	ctx, cancel := context.WithTimeout(context.Background(), lastAcks)
	defer cancel()
	m.flushAcks(ctx)
}

// Seen implements stream.Binding.
func (m *many) Seen() {}

// Expired implements stream.Binding: what is gone is told by the state that it led to.
func (m *many) Expired(s *stream.Stream, first uint64) {
	codec := m.codecFor(s.Log.Entity)
	s.Skip(first, func() []byte { return codec.Expired(m.at(), s.Log.Entity.String(), first) })
	if s.Log.Kind != id.KindSession {
		s.Release(nil) // only sessions have a state that tells what has been
		return
	}
	// The socket is counted until its streams are closed, so Stop has not returned.
	m.c.s.wg.Go(func() {
		state, err := m.state(m.c.s.ctx, s.Log, dialect.Request{})
		if err != nil {
			m.c.s.dep.Logger.Debug().Err(err).Stringer("log", s.Log).Msg("fail to explain expired history")
			s.Release(nil)
			return
		}
		s.Release(func() []byte { return codec.Exported(m.at(), s.Log.Entity.String(), state) })
	})
}

// Failed implements stream.Binding: the session is not shown any more, others are.
func (m *many) Failed(s *stream.Stream, err error) {
	if errors.Is(err, eventlog.ErrClosed) {
		m.c.end(fault.New(fault.Draining))
		return
	}
	if errors.Is(err, eventlog.ErrBeyondEnd) {
		err = fault.New(fault.SessionExpired).Wrap(err)
	}
	m.refuse(dialect.Request{Action: dialect.Resume, Session: s.Log.Entity.String()}, err)
	m.forget(s)
}

// Deleted implements stream.Binding: a frame has said so, and the socket goes on with its
// other sessions.
func (m *many) Deleted(s *stream.Stream) {
	m.forget(s)
	// The socket is counted until its streams are closed, so Stop has not returned. A stream
	// must not be closed by its own callback.
	m.c.s.wg.Go(s.Close)
}

// Notice implements stream.Binding. It is said in the variant of the session.
func (m *many) Notice(s *stream.Stream, d event.NoticeData) {
	m.c.notice(m.codecFor(s.Log.Entity), s.Log, d)
}

// forget takes the session of a stream off the socket.
func (m *many) forget(s *stream.Stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions = slices.DeleteFunc(m.sessions, func(a *attached) bool { return a.stream == s })
}
