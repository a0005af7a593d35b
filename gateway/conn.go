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
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// floodFactor times the burst is the number of refused messages in a row that ends a socket:
// its client ignores the faults.
const floodFactor = 10

// authMessage is the type of the first message of a client that has shown no
// credentials in the handshake.
const authMessage = "auth"

var _ binding.Connection = (*conn)(nil)

// conn is one WebSocket: it authenticates the client, reads messages on one goroutine and
// handles them within the limits on another. Its binding does the work.
type conn struct {
	*ws.Socket // nil before the handshake

	s            *Server
	route        Route
	policy       binding.Policy
	query        url.Values
	binding      binding.Binding
	subprotocols []string
	messages     *rate.Limiter
	control      *rate.Limiter // of pings and pongs
	born         time.Time
	pass         *admission.Pass
	gone         chan struct{} // closed when the connection has ended
	opened       chan struct{} // closed when messages are handled
	denied       *fault.Fault  // the refusal to send once the socket is open
	backlog      backlog
	slot         *stream.Slot
	listens      bool            // read and written by the goroutine that reads the socket
	ctx          context.Context //nolint:containedctx // lives as long as the work for the socket
	cut          context.CancelCauseFunc
	ref, remote  string // in the audit log: of the socket and its address

	refused int // messages over the rate in a row; owned by the goroutine that handles messages

	mu        sync.Mutex
	principal auth.Principal
	known     bool      // principal has been authenticated
	acts      bool      // and may do more than watch
	started   time.Time // when the client was greeted
	ready     bool      // messages are handled
}

func newConn(s *Server, route Route) *conn {
	c := &conn{
		s: s, route: route, policy: route.policy(s), born: s.dep.Clock(), ref: binding.NewID(), gone: make(chan struct{}), opened: make(chan struct{}),
		slot: stream.NewSlot(), pass: s.gate.Pass(),
		messages: rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
		control:  rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
	}
	if c.policy.Slows {
		c.messages.SetLimit(rate.Inf)
	}
	c.ctx, c.cut = context.WithCancelCause(s.ctx)
	c.backlog.begin()
	return c
}

// serve opens the connection and starts the goroutine that reads it. The opening needs a large
// stack, which ends with this goroutine; the one that reads gets by with a small stack.
func (c *conn) serve() {
	if c.begun() {
		go c.listen()
		return
	}
	c.conclude()
	c.depart()
}

// begun opens the connection and reports whether to read from it.
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

// listen reads the socket until it ends. It answers heartbeats at once.
func (c *conn) listen() {
	c.listens = true
	defer c.depart()
	defer c.conclude()
	defer c.recovered()
	for {
		message, err := c.Read()
		if o, ok := errors.AsType[*ws.Oversize](err); ok {
			c.s.met.frames.Inc()
			c.s.met.received.Add(float64(o.Size))
			c.take(received{oversize: o, release: func() {}})
			continue
		}
		if err != nil {
			c.backlog.done() // the fault follows the answers to earlier messages
			c.failed(err)
			return
		}
		c.s.met.frames.Inc()
		c.s.met.received.Add(float64(len(message)))
		if !c.heartbeat(message) {
			kept, release := c.Keep(message)
			c.take(received{message: kept, release: release})
		}
	}
}

// heartbeat answers a message that is a mere heartbeat, without waiting for the messages before
// it. It returns false for other messages, and until the connection handles messages.
func (c *conn) heartbeat(message []byte) bool {
	select {
	case <-c.opened:
		return c.binding.Heartbeat(message)
	default:
		return false
	}
}

// conclude waits until the socket, which is closing, has ended, and records its end.
func (c *conn) conclude() {
	<-c.Done()
	c.backlog.done()
	c.binding.Close()
	c.s.met.closed(c.CloseCode())
	c.ended()
}

// Broken implements ws.Handler: earlier messages count and are answered.
func (c *conn) Broken() {
	if c.listens {
		c.backlog.done()
	}
}

// failed ends the socket for a fault; any other error means that it has ended.
func (c *conn) failed(err error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		c.End(f)
		return
	}
	c.s.dep.Logger.Debug().Err(err).Msg("close socket")
}

// open authenticates the client and starts the binding.
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
	c.Limit(c.policy.Limits)
	return c.binding.Begin()
}

// identify takes the credentials of the first message, {"type":"auth",
// "token":"..."}, unless the handshake carried some.
func (c *conn) identify() error {
	if c.identified() {
		return nil
	}
	message, err := c.Read()
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
		return c.FaultOf(err)
	}
	return nil
}

func (c *conn) identified() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// Greeted implements binding.Intake: it starts the time limit for services to start.
func (c *conn) Greeted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = c.s.dep.Clock()
}

// Settle implements binding.Intake: it tells the binding once the needed services run. It is called whenever that may
// have become true, and does not block.
func (c *conn) Settle() {
	c.mu.Lock()
	waiting := !c.ready && !c.started.IsZero()
	c.mu.Unlock()
	if waiting && c.s.answerable() {
		c.binding.Settle()
	}
}

// TakeUp implements binding.Intake: the first call runs welcome and then lets messages be handled.
func (c *conn) TakeUp(welcome func()) {
	c.mu.Lock()
	before := c.ready
	c.ready = true
	c.mu.Unlock()
	if !before {
		welcome()
		close(c.opened)
	}
}

// allowed applies the rate. It refuses a message over the rate with a fault, and cuts off a
// client that goes on regardless.
func (c *conn) allowed() bool {
	if c.messages.Allow() {
		c.refused = 0
		return true
	}
	if !c.flooded() {
		c.Tell(fault.New(fault.RateLimited))
	}
	return false
}

// flooded counts a message over the rate, and cuts off a client that goes on regardless.
func (c *conn) flooded() bool {
	c.refused++
	if c.refused <= floodFactor*c.s.cfg.MessageBurst {
		return false
	}
	c.Finish(binding.ClosePolicy, string(fault.RateLimited))
	return true
}

// transmit sends commands.
func (c *conn) transmit(ctx context.Context, replyTo string, cmds ...command.Command) error {
	p := c.Principal()
	for _, cmd := range cmds {
		if cmd.Tenant != p.Tenant {
			return fault.New(fault.Forbidden)
		}
		if len(cmd.Data) > binding.MaxCommand {
			return fault.Newf(fault.InvalidField, "The message is too long. Send at most %d KB of text at once.", binding.MaxCommand>>10)
		}
		cmd.Source, cmd.ReplyTo = c.s.shared.Source, replyTo
		if err := c.s.dep.Commands.Send(ctx, cmd); err != nil {
			return err
		}
		c.sent(cmd)
	}
	return nil
}

// Principal implements binding.Client.
func (c *conn) Principal() auth.Principal {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.principal
}

// MayAct implements binding.Client: it reports whether the client may do more than watch.
func (c *conn) MayAct() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acts
}

// Tell implements binding.Reporter: it sends a fault in the words of the dialect.
func (c *conn) Tell(f *fault.Fault) {
	c.s.met.faults.WithLabelValues(string(f.Code)).Inc()
	if frame := c.binding.Fail(f, c.s.dep.Clock()); len(frame) > 0 {
		c.Force(transport.Text(frame))
	}
}

// Slot implements binding.Socket.
func (c *conn) Slot() *stream.Slot { return c.slot }

// Context implements binding.Client.
func (c *conn) Context() context.Context { return c.ctx }

// Query implements binding.Client.
func (c *conn) Query() url.Values { return c.query }

// Rated implements binding.Intake.
func (c *conn) Rated(kept bool) {
	if kept {
		c.refused = 0
		return
	}
	c.flooded()
}

// AllowHeartbeat implements binding.Intake.
func (c *conn) AllowHeartbeat() bool { return c.control.Allow() }

// Underway implements binding.Intake.
func (c *conn) Underway(n int) { c.backlog.count(n) }

// Command implements binding.Services.
func (c *conn) Command(ctx context.Context, replyTo string, cmds ...command.Command) error {
	if len(cmds) > 0 && !c.MayAct() {
		return fault.New(fault.Forbidden)
	}
	return c.transmit(ctx, replyTo, cmds...)
}

// Acknowledge implements binding.Services.
func (c *conn) Acknowledge(ctx context.Context, cmd command.Command) error {
	return c.transmit(ctx, "", cmd)
}
