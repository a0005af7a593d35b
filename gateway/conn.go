package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/wire"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxCommand bounds what one message asks for, as encoded: it goes into an event of
// at most 256 KiB, with everything else that the event says.
const maxCommand = 160 << 10

// floodFactor times the burst of refused messages in a row ends a socket that does
// not listen to being told.
const floodFactor = 10

// authMessage is the type of the first message of a client that has shown no
// credentials in the handshake.
const authMessage = "auth"

// conn is one socket of a dialect: it reads messages on one goroutine and shows the
// log through a feed.
type conn struct {
	s            *Server
	dialect      dialect.Dialect
	codec        dialect.Codec
	key          any // under which an entry remembers the codec's frames
	sock         *wire.Socket
	subprotocols []string
	messages     *rate.Limiter
	control      *rate.Limiter // of pings and pongs
	born         time.Time
	leave        []func()      // undoes what counts the connection
	gone         chan struct{} // closed when nothing of it is left
	opened       chan struct{} // closed when messages are taken up
	denied       *fault.Fault  // why it is told no, once the socket is open

	wanted, after      string // the query's session and after
	continues, resumes bool   // whether it has them

	refused int // messages over the rate in a row

	mu        sync.Mutex
	principal auth.Principal
	known     bool        // principal has been authenticated
	session   subject.Log //
	created   bool        // the session was made for this socket
	exists    bool        // the session has a log
	started   time.Time   // when it was greeted
	ready     bool        // messages are taken up
	at        uint64      // where the feed begins
	feed      *feed
}

func newConn(s *Server, d dialect.Dialect) *conn {
	return &conn{
		s: s, dialect: d, born: s.dep.Clock(), gone: make(chan struct{}), opened: make(chan struct{}),
		messages: rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
		control:  rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
	}
}

// frameKey keeps the keys of remembered frames apart from anybody else's.
type frameKey string

func (c *conn) use(codec dialect.Codec) { c.codec, c.key = codec, frameKey(codec.Name()) }

// run serves the socket until it ends.
func (c *conn) run() {
	defer c.depart()
	defer c.conclude()
	defer c.recovered()
	if err := c.open(); err != nil {
		c.failed(err)
		return
	}
	for {
		message, err := c.sock.Read()
		if err != nil {
			c.failed(err)
			return
		}
		c.s.met.frames.Inc()
		c.s.met.received.Add(float64(len(message)))
		if !c.allowed() {
			continue
		}
		select {
		case <-c.opened: // until then messages wait where they are: in the socket
		case <-c.sock.Done():
			return
		}
		c.handle(message)
	}
}

// conclude waits for the end of the socket, which has begun, and accounts for it.
func (c *conn) conclude() {
	<-c.sock.Done()
	if f := c.shown(); f != nil {
		f.close()
	}
	c.s.met.closed(c.sock.CloseCode())
}

// recovered ends the socket whose codec has a bug, and nobody else's.
func (c *conn) recovered() {
	if r := recover(); r != nil {
		c.s.dep.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("a connection panicked")
		c.sock.Finish(closeInternal, string(fault.Internal))
	}
}

// failed ends the socket for a fault; any other error means that it has ended.
func (c *conn) failed(err error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		c.end(f)
		return
	}
	c.s.dep.Logger.Debug().Err(err).Msg("a socket ended")
}

// open makes out who is there and which session is meant, greets, and begins to
// show the session's log.
func (c *conn) open() error {
	if c.denied != nil {
		return c.denied
	}
	if err := c.identify(); err != nil {
		return err
	}
	after, err := c.resolve()
	if err != nil {
		return err
	}
	c.greet(dialect.Starting, after.Seq)
	c.mu.Lock()
	c.started, c.exists, c.at = c.s.dep.Clock(), !c.created, after.Seq
	c.mu.Unlock()
	if c.created {
		if err := c.create(); err != nil {
			return c.s.asFault(err)
		}
	}
	c.settle()
	f := newFeed(c, after)
	c.mu.Lock()
	c.feed = f
	c.mu.Unlock()
	return nil
}

// identify takes the credentials of the first message, {"type":"auth",
// "token":"..."}, unless the handshake carried some.
func (c *conn) identify() error {
	if c.identified() {
		return nil
	}
	message, err := c.sock.Read()
	if err != nil {
		return err
	}
	var m struct {
		Type  string `json:"type"`
		Token string `json:"token"`
	}
	if strictjson.Check(message) != nil || json.Unmarshal(message, &m) != nil || m.Type != authMessage {
		return fault.New(fault.Unauthenticated)
	}
	if err := c.authenticate(c.s.ctx, m.Token); err != nil {
		return c.s.asFault(err)
	}
	return nil
}

func (c *conn) identified() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

func (c *conn) greet(stage dialect.Stage, seq uint64) {
	for _, p := range c.codec.Greet(dialect.Greeting{
		Stage: stage, SessionID: c.session.Entity.String(), Now: c.s.dep.Clock(), Seq: seq,
	}) {
		c.sock.Force(wire.Text(p))
	}
}

// settle takes up messages, and says so, once somebody is there to answer and the
// session exists: an id that the client knows can be come back to. It is called
// whenever one of these may have become true, and does not block.
func (c *conn) settle() {
	if !c.s.answerable() {
		return
	}
	c.mu.Lock()
	now := !c.ready && c.exists && !c.started.IsZero()
	c.ready = c.ready || now
	at := c.at
	f := c.feed
	c.mu.Unlock()
	if !now {
		return
	}
	if f != nil {
		at = f.position()
	}
	c.greet(dialect.Ready, at)
	close(c.opened)
}

// sessionExists says that the session has a log.
func (c *conn) sessionExists() {
	c.mu.Lock()
	fresh := !c.exists
	c.exists = true
	c.mu.Unlock()
	if fresh {
		c.settle()
	}
}

// allowed applies the rate. A message over it is refused with an error that says
// so; a client that goes on regardless is cut off.
func (c *conn) allowed() bool {
	if c.messages.Allow() {
		c.refused = 0
		return true
	}
	c.refused++
	if c.refused > floodFactor*c.s.cfg.MessageBurst {
		c.sock.Finish(closePolicy, string(fault.RateLimited))
		return false
	}
	c.tell(fault.New(fault.RateLimited))
	return false
}

// handle turns a message into commands and sends them. What cannot be done is said
// in the dialect; the socket stays open.
func (c *conn) handle(message []byte) {
	ctx, span := telemetry.Start(c.s.ctx, "receive "+c.codec.Name(), trace.SpanKindServer)
	err := c.forward(ctx, message)
	telemetry.End(span, err)
	if err != nil {
		c.tell(c.s.asFault(err))
	}
}

func (c *conn) forward(ctx context.Context, message []byte) error {
	if err := strictjson.Check(message); err != nil {
		return err
	}
	p := c.who()
	if !p.Owns(c.session) {
		return fault.New(fault.Forbidden)
	}
	cmds, err := c.codec.Decode(message, dialect.Inbound{
		Session: c.session, Principal: p.Subject, NewID: newID, Now: c.s.dep.Clock(),
	})
	if err != nil {
		return err
	}
	for _, cmd := range cmds {
		if cmd.Tenant != p.Tenant {
			return fault.New(fault.Forbidden)
		}
		if len(cmd.Data) > maxCommand {
			return fault.Newf(fault.InvalidField, "The message is too long. Send at most %d KB of text at once.", maxCommand>>10)
		}
		cmd.Source = c.s.source
		if err := c.s.dep.Commands.Send(ctx, cmd); err != nil {
			return err
		}
	}
	return nil
}

// shown returns the feed, nil before the log is shown.
func (c *conn) shown() *feed {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.feed
}

func (c *conn) who() auth.Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.principal
}

// tell shows a fault in the dialect.
func (c *conn) tell(f *fault.Fault) {
	c.s.met.faults.WithLabelValues(string(f.Code)).Inc()
	c.sock.Force(wire.Text(c.codec.Fail(f, c.s.dep.Clock())))
}
