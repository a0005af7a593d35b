package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
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
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
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

// conn is one socket: it reads messages on one goroutine, within the limits, of
// somebody who is known. What it does with them is its manner.
type conn struct {
	s            *Server
	dialect      dialect.Dialect
	codec        dialect.Codec
	query        url.Values
	watch        *watched // nil: neither path nor query says what is shown
	manner       manner
	sock         *wire.Socket
	subprotocols []string
	messages     *rate.Limiter
	control      *rate.Limiter // of pings and pongs
	born         time.Time
	leave        []func()      // undoes what counts the connection
	gone         chan struct{} // closed when nothing of it is left
	opened       chan struct{} // closed when messages are taken up
	denied       *fault.Fault  // why it is told no, once the socket is open
	ref, remote  string        // in the audit log: of the socket and its address

	refused int // messages over the rate in a row

	mu        sync.Mutex
	principal auth.Principal
	known     bool      // principal has been authenticated
	acts      bool      // and may do more than watch
	started   time.Time // when it was greeted
	ready     bool      // messages are taken up
}

// manner is what a socket does with the messages that it reads: one log is
// shown on it, or as many as its client asks for. begin, handle and close are called
// by the goroutine that reads; settle, low and tick by anybody, and do not block.
type manner interface {
	// begin greets the client, who is known by now.
	begin() error
	// settle lets messages be taken up (conn.takeUp) if all else is there: somebody
	// to answer is.
	settle()
	// handle does what a message asks for. What cannot be done it says in the dialect;
	// the error is for the trace.
	handle(ctx context.Context, message []byte) error
	// low: the socket's queue has room again.
	low()
	// tick is called about once a second.
	tick(now time.Time)
	// close ends what begin and handle have begun. The socket is over.
	close()
}

func newConn(s *Server, d dialect.Dialect) *conn {
	return &conn{
		s: s, dialect: d, born: s.dep.Clock(), ref: newID(), gone: make(chan struct{}), opened: make(chan struct{}),
		messages: rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
		control:  rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
	}
}

// use sets the codec, which decides the manner.
func (c *conn) use(codec dialect.Codec) {
	c.codec = codec
	if peers, ok := codec.(spoken); ok {
		c.manner = newPeer(c, peers.Peers)
		return
	}
	if several, ok := codec.(dialect.Sessions); ok {
		c.manner = newMany(c, several)
		return
	}
	if teams, ok := codec.(dialect.Teams); ok {
		c.manner = newLookout(c, teams)
		return
	}
	c.manner = newOne(c)
}

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
		if c.within() {
			c.handle(message)
		}
	}
}

func (c *conn) handle(message []byte) {
	ctx, span := telemetry.Start(c.s.ctx, "receive "+c.codec.Name(), trace.SpanKindServer)
	telemetry.End(span, c.manner.handle(ctx, message))
}

// conclude waits for the end of the socket, which has begun, and accounts for it.
func (c *conn) conclude() {
	<-c.sock.Done()
	c.manner.close()
	c.s.met.closed(c.sock.CloseCode())
	c.ended()
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

// open makes out who is there and begins.
func (c *conn) open() error {
	if c.denied != nil {
		c.turnedAway(c.denied)
		return c.denied
	}
	if err := c.identify(); err != nil {
		if f, ok := errors.AsType[*fault.Fault](err); ok {
			c.turnedAway(f)
		}
		return err
	}
	c.accepted()
	return c.manner.begin()
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

// greeted notes that the client waits from now on for its messages to be taken up.
func (c *conn) greeted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = c.s.dep.Clock()
}

// settle looks whether messages can be taken up. It is called whenever that may
// have become true, and does not block.
func (c *conn) settle() {
	c.mu.Lock()
	waiting := !c.ready && !c.started.IsZero()
	c.mu.Unlock()
	if waiting && c.s.answerable() {
		c.manner.settle()
	}
}

// takeUp lets messages be taken up, after welcome has been called, once.
func (c *conn) takeUp(welcome func()) {
	c.mu.Lock()
	before := c.ready
	c.ready = true
	c.mu.Unlock()
	if !before {
		welcome()
		close(c.opened)
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

// send sends what a message has been found to ask for, if whoever asks may act.
func (c *conn) send(ctx context.Context, p auth.Principal, replyTo string, cmds ...command.Command) error {
	if len(cmds) > 0 && !c.mayAct() {
		return fault.New(fault.Forbidden)
	}
	return c.transmit(ctx, p, replyTo, cmds...)
}

// transmit sends commands.
func (c *conn) transmit(ctx context.Context, p auth.Principal, replyTo string, cmds ...command.Command) error {
	for _, cmd := range cmds {
		if cmd.Tenant != p.Tenant {
			return fault.New(fault.Forbidden)
		}
		if len(cmd.Data) > maxCommand {
			return fault.Newf(fault.InvalidField, "The message is too long. Send at most %d KB of text at once.", maxCommand>>10)
		}
		cmd.Source, cmd.ReplyTo = c.s.source, replyTo
		if err := c.s.dep.Commands.Send(ctx, cmd); err != nil {
			return err
		}
		c.sent(cmd)
	}
	return nil
}

func (c *conn) who() auth.Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.principal
}

// mayAct reports whether the socket is for more than watching.
func (c *conn) mayAct() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acts
}

// tell shows a fault in the dialect.
func (c *conn) tell(f *fault.Fault) {
	c.s.met.faults.WithLabelValues(string(f.Code)).Inc()
	if frame := c.codec.Fail(f, c.s.dep.Clock()); len(frame) > 0 {
		c.sock.Force(wire.Text(frame))
	}
}
