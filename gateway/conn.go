package gateway

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/edge"
	"github.com/waggle-dev/waggle/gateway/forward"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
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
	query        string // encoded, which takes less memory
	binding      binding.Binding
	bridge       *bridge // nil = the credentials came with the handshake, or the installation has one cell
	subprotocols []string
	messages     *rate.Limiter
	control      *rate.Limiter // of pings and pongs
	born         time.Time
	pass         *admission.Pass
	arrival      *arrival.Connection // nil before admit
	gone         chan struct{}       // closed when the connection has ended
	opened       chan struct{}       // closed when messages are handled
	denied       *fault.Fault        // the refusal to send once the socket is open
	backlog      backlog
	slot         *stream.Slot
	questions    stream.Questions // shown to the client
	client       edge.Client
	listens      bool            // read and written by the goroutine that reads the socket
	ctx          context.Context //nolint:containedctx // lives as long as the work for the socket
	cut          context.CancelCauseFunc
	ref          string // of the socket in the audit log

	refused int // messages over the rate in a row; owned by the goroutine that handles messages

	mu      sync.Mutex
	started time.Time // when the client was greeted
	ready   bool      // messages are handled
}

func newConn(s *Server, route Route, r *http.Request) *conn {
	c := &conn{
		s: s, route: route, policy: route.policy(s), born: s.dep.Clock(), ref: edge.NewID(), gone: make(chan struct{}), opened: make(chan struct{}),
		slot: stream.NewSlot(), pass: s.gate.Pass(r.RemoteAddr),
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
	if waiting && c.s.ready.answerable() {
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
// client that continues regardless.
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

// flooded counts a message over the rate, and cuts off a client that continues regardless.
func (c *conn) flooded() bool {
	c.refused++
	if c.refused <= floodFactor*c.s.cfg.MessageBurst {
		return false
	}
	c.Finish(binding.ClosePolicy, string(fault.RateLimited))
	return true
}

// Client implements binding.Connection.
func (c *conn) Client() *edge.Client { return &c.client }

// Tell implements binding.Connection: it sends a fault in the words of the dialect.
func (c *conn) Tell(f *fault.Fault) {
	c.s.met.faults.WithLabelValues(string(f.Code)).Inc()
	if frame := c.binding.Fail(f, c.s.dep.Clock()); len(frame) > 0 {
		c.Force(transport.Text(frame))
	}
}

// Slot implements binding.Socket.
func (c *conn) Slot() *stream.Slot { return c.slot }

// Context implements binding.Connection.
func (c *conn) Context() context.Context { return c.ctx }

// Query implements binding.Connection.
func (c *conn) Query() url.Values {
	query, err := url.ParseQuery(c.query)
	if err != nil {
		return nil // not of what was encoded
	}
	return query
}

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

// Protocol implements connection: it returns the name of the dialect.
func (c *conn) Protocol() string { return c.route.protocol }

// bridge is the binding of a socket whose client authenticates with its first message, in an installation of several cells. If
// another cell serves the client's tenant, it carries messages to a socket of that cell and back; otherwise the binding of
// the route works as ever.
type bridge struct {
	binding.Binding // of the route

	c      *conn
	from   forward.Origin
	to     id.Name       // the other cell; set before Begin
	token  string        // of the first message, until Begin
	abroad atomic.Bool   // far is set
	room   chan struct{} // the queue of the socket has room again
	far    *websocket.Conn
}

// backlog holds the messages of a socket that are read and not handled yet. A goroutine, which
// ends when the backlog is empty, handles them one at a time and in order. The socket is read
// meanwhile, so that a slow message does not delay the answers to heartbeats.
type backlog struct {
	mu      sync.Mutex
	waiting []received
	bytes   int
	busy    bool      // a worker goroutine handles messages
	beside  int       // long requests, which run beside the messages
	over    bool      // later messages are discarded
	changed sync.Cond // of anything above
}

// received is a message, or the head and tail of one that is too large.
type received struct {
	message  []byte
	oversize *ws.Oversize // instead of message
	release  func()       // called once it is handled or discarded
}

// begin makes the backlog ready, and marks it as busy.
func (b *backlog) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy, b.changed.L = true, &b.mu
}

// turnedAway records why a socket was refused, before or after its handshake.
func (c *conn) turnedAway(f *fault.Fault) {
	action := audit.Refused
	if f.Code == fault.Unauthenticated || f.Code == fault.Expired {
		action = audit.AuthFailed
	}
	tenant, r := c.client.Described(audit.Record{Outcome: audit.Denied, Code: string(f.Code)})
	c.s.refusals.Record(action, tenant, r)
}

// ended records the end of a socket that was accepted.
func (c *conn) ended() {
	if c.client.Identified() {
		c.client.Record(audit.Closed, audit.Record{CloseCode: c.CloseCode(), DurationMS: c.s.dep.Clock().Sub(c.born).Milliseconds()})
	}
}

// Close codes of RFC 6455, section 7.4.1.
const (
	closeTryLater = 1013
	closePrivate  = 4000 // from here on the codes are ours
)

var (
	_ ws.Handler = (*conn)(nil)
	_ ws.Prober  = (*conn)(nil)
)

// End implements transport.Transport: it closes the socket with the fault's code. A frame before it explains codes of
// our own and codes with several meanings.
func (c *conn) End(f *fault.Fault) {
	code := ws.CloseCode(f)
	if code == closeTryLater || code == binding.CloseInternal || code >= closePrivate {
		c.Tell(f)
	}
	c.Socket.End(f)
}

// Low implements ws.Handler: the queue has drained.
func (c *conn) Low() { c.binding.Room() }

// Pong implements ws.Prober.
func (c *conn) Pong(payload []byte) { c.binding.Pong(payload) }

// Control implements ws.Handler: control frames have a rate of their own.
func (c *conn) Control() bool {
	c.s.met.frames.Inc()
	return c.control.Allow()
}

// Ended implements ws.Handler: the client is stuck, silent or slow.
func (c *conn) Ended(f *fault.Fault) {
	c.s.dep.Logger.Debug().Str("code", string(f.Code)).Msg("connection ended")
}

// Tick implements ws.Handler: it ends sockets whose credentials have lapsed or never came, and
// those that have waited too long for services.
func (c *conn) Tick(time.Time) {
	now := c.s.dep.Clock()
	c.mu.Lock()
	started, ready := c.started, c.ready
	c.mu.Unlock()
	p, known := c.client.Principal(), c.client.Identified()
	over := lapsed(c.s.dep.Auth, now, p)
	switch {
	case !known:
		if c.denied == nil && now.Sub(c.born) > c.s.cfg.FirstMessage {
			c.End(fault.New(fault.HandshakeSlow))
		}
	case over != nil:
		c.End(over)
	case !ready && !started.IsZero() && now.Sub(started) > c.s.cfg.ReadyTimeout:
		c.End(fault.Newf(fault.Overloaded, "The services for this request are not running. Try again later."))
	default:
		c.binding.Tick(now)
	}
}

// lapsed returns why the credentials of a principal are no longer valid, or nil.
func lapsed(a auth.Authenticator, now time.Time, p auth.Principal) *fault.Fault {
	r, revocable := a.(auth.Revoker)
	switch {
	case !p.Expires.IsZero() && !now.Before(p.Expires):
		return fault.New(fault.Expired)
	case revocable && r.Revoked(p):
		return fault.New(fault.Unauthenticated)
	}
	return nil
}
