package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/strictjson"
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

// conn is one socket: it reads messages on one goroutine, of somebody who is known, and
// handles them within the limits on another. What it does with them is its manner.
type conn struct {
	s            *Server
	dialect      dialect.Dialect
	codec        dialect.Codec
	query        url.Values
	watch        *watched // nil: neither path nor query says what is shown
	manner       manner
	sock         *ws.Socket
	subprotocols []string
	messages     *rate.Limiter
	control      *rate.Limiter // of pings and pongs
	born         time.Time
	pass         *admission.Pass
	gone         chan struct{} // closed when nothing of it is left
	opened       chan struct{} // closed when messages are taken up
	denied       *fault.Fault  // why it is told no, once the socket is open
	backlog      backlog
	slot         *stream.Slot
	listens      bool            // beside the backlog; of the goroutine that reads
	ctx          context.Context //nolint:containedctx // the life of what is done for the socket
	cut          context.CancelCauseFunc
	ref, remote  string // in the audit log: of the socket and its address

	refused int // messages over the rate in a row; of whoever handles messages

	mu        sync.Mutex
	principal auth.Principal
	known     bool      // principal has been authenticated
	acts      bool      // and may do more than watch
	started   time.Time // when it was greeted
	ready     bool      // messages are taken up
}

// manner is what a socket does with the messages that it reads: one log is
// shown on it, or as many as its client asks for. begin, handle and close are called
// one after the other; settle, low and tick by anybody, and do not block.
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
	c := &conn{
		s: s, dialect: d, born: s.dep.Clock(), ref: newID(), gone: make(chan struct{}), opened: make(chan struct{}),
		slot: stream.NewSlot(), pass: s.gate.Pass(),
		messages: rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
		control:  rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
	}
	c.ctx, c.cut = context.WithCancelCause(s.ctx)
	c.backlog.begin()
	return c
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

// serve begins and has the socket read. What a beginning asks for needs a large stack:
// it ends with this goroutine, and the one that reads has a small one.
func (c *conn) serve() {
	if c.begun() {
		go c.listen()
		return
	}
	c.conclude()
	c.depart()
}

// begun reports whether there is somebody to be listened to.
func (c *conn) begun() bool {
	defer c.recovered()
	if err := c.open(); err != nil {
		c.failed(err)
		c.backlog.drop()
		return false
	}
	c.work()
	return true
}

// listen reads the socket until it ends. Signs of life are answered at once.
func (c *conn) listen() {
	c.listens = true
	defer c.depart()
	defer c.conclude()
	defer c.recovered()
	for {
		message, err := c.sock.Read()
		if o, ok := errors.AsType[*ws.Oversize](err); ok {
			c.s.met.frames.Inc()
			c.s.met.received.Add(float64(o.Size))
			c.take(received{oversize: o, release: func() {}})
			continue
		}
		if err != nil {
			c.backlog.done() // what is said about it comes after the answers to what was before it
			c.failed(err)
			return
		}
		c.s.met.frames.Inc()
		c.s.met.received.Add(float64(len(message)))
		if !c.pulse(message) {
			kept, release := c.sock.Keep(message)
			c.take(received{message: kept, release: release})
		}
	}
}

// pulse answers a message that asks for nothing but a sign of life, once messages are
// taken up: it waits for none of those before it.
func (c *conn) pulse(message []byte) bool {
	p, ok := c.manner.(*peer)
	if !ok {
		return false
	}
	select {
	case <-c.opened:
		return p.pulse(message)
	default:
		return false
	}
}

// conclude waits for the end of the socket, which has begun, and accounts for it.
func (c *conn) conclude() {
	<-c.sock.Done()
	c.backlog.done()
	c.manner.close()
	c.s.met.closed(c.sock.CloseCode())
	c.ended()
}

// Broken implements ws.Handler: what came before counts, and is answered.
func (c *conn) Broken() {
	if c.listens {
		c.backlog.done()
	}
}

// failed ends the socket for a fault; any other error means that it has ended.
func (c *conn) failed(err error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		c.end(f)
		return
	}
	c.s.dep.Logger.Debug().Err(err).Msg("close socket")
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
	if err := c.authenticate(c.ctx, m.Token); err != nil {
		return c.faultOf(err)
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
	if !c.flooded() {
		c.tell(fault.New(fault.RateLimited))
	}
	return false
}

// flooded counts a message over the rate, and cuts off a client that goes on regardless.
func (c *conn) flooded() bool {
	c.refused++
	if c.refused <= floodFactor*c.s.cfg.MessageBurst {
		return false
	}
	c.sock.Finish(closePolicy, string(fault.RateLimited))
	return true
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

// faultFrame returns the frame that tells of a fault.
func (c *conn) faultFrame(f *fault.Fault) []byte {
	now := c.s.dep.Clock()
	if l, ok := c.manner.(*lookout); ok {
		return l.fail(f, now)
	}
	return c.codec.Fail(f, now)
}

// tell shows a fault in the dialect.
func (c *conn) tell(f *fault.Fault) {
	c.s.met.faults.WithLabelValues(string(f.Code)).Inc()
	if frame := c.faultFrame(f); len(frame) > 0 {
		c.sock.Force(transport.Text(frame))
	}
}
