package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
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

const (
	// maxWaiting bounds the frames that wait for services to be there, as many as may
	// wait for their turn in a session.
	maxWaiting = 16
	// floodFactor times the burst of refused frames in a row ends a socket that does
	// not listen to being told.
	floodFactor = 10
)

// conn is one socket of a dialect: it reads frames on one goroutine and shows the
// log through a feed.
type conn struct {
	s            *Server
	dialect      dialect.Dialect
	codec        dialect.Codec
	query        url.Values
	subprotocols []string
	sock         *wire.Socket
	limiter      *rate.Limiter // of messages
	control      *rate.Limiter // of pings and pongs
	born         time.Time

	mu        sync.Mutex
	principal auth.Principal
	known     bool // principal has been authenticated
	feed      *feed

	session subject.Log
	created bool // the session was made for this socket
	refused int  // frames over the rate in a row

	inbound sync.Mutex // held while frames are handled, so that they keep their order
	ready   bool
	waiting [][]byte
	bytes   int
	once    sync.Once // of answerable
}

func newConn(s *Server, d dialect.Dialect, codec dialect.Codec, query url.Values) *conn {
	return &conn{
		s: s, dialect: d, codec: codec, query: query, born: s.dep.Clock(),
		limiter: rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
		control: rate.NewLimiter(rate.Limit(s.cfg.MessageRate), s.cfg.MessageBurst),
	}
}

// run serves the socket until it ends.
func (c *conn) run() {
	defer c.s.remove(c)
	defer c.sock.Abort()
	if err := c.open(); err != nil {
		c.failed(err)
		<-c.sock.Done()
		return
	}
	defer c.shown().close()
	for {
		frame, err := c.sock.Read()
		if err != nil {
			c.failed(err)
			<-c.sock.Done()
			return
		}
		c.receive(frame)
	}
}

// failed ends the socket for a fault; any other error means that it has ended.
func (c *conn) failed(err error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		c.end(f)
		return
	}
	if !errors.Is(err, io.EOF) {
		c.s.dep.Logger.Debug().Err(err).Msg("a socket ended")
	}
	c.sock.Abort()
}

// open makes out who is there and which session is meant, greets, and begins to
// show the session's log.
func (c *conn) open() error {
	if err := c.authenticate(); err != nil {
		return err
	}
	after, err := c.resolve()
	if err != nil {
		return err
	}
	c.greet(dialect.Starting, after.Seq)
	if c.created {
		if err := c.create(); err != nil {
			return err
		}
	}
	f := newFeed(c, after)
	c.mu.Lock()
	c.feed = f
	c.mu.Unlock()
	if c.s.answerable() {
		c.answerable()
	}
	return nil
}

// authenticate takes the credentials of the first message, {"type":"auth",
// "token":"..."}, unless the handshake carried some.
func (c *conn) authenticate() error {
	if c.identified() {
		return nil
	}
	frame, err := c.sock.Read()
	if err != nil {
		return err
	}
	var m struct {
		Type  string `json:"type"`
		Token string `json:"token"`
	}
	if strictjson.Check(frame) != nil || json.Unmarshal(frame, &m) != nil || m.Type != "auth" {
		return fault.New(fault.Unauthenticated)
	}
	p, err := c.s.dep.Auth.Authenticate(c.s.ctx, m.Token)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.principal, c.known = p, true
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

// answerable is called once services are there: it says so and takes up the frames
// that have waited. It does not block its caller.
func (c *conn) answerable() {
	if c.shown() == nil {
		return // open looks by itself
	}
	c.once.Do(func() {
		c.inbound.Lock()
		if len(c.waiting) == 0 {
			c.becomeReady()
			c.inbound.Unlock()
			return
		}
		go func() {
			defer c.inbound.Unlock()
			c.becomeReady()
		}()
	})
}

func (c *conn) becomeReady() {
	c.greet(dialect.Ready, c.shown().position())
	c.ready = true
	for _, f := range c.waiting {
		c.handle(f)
	}
	c.waiting = nil
}

// receive takes one frame of the client.
func (c *conn) receive(frame []byte) {
	if !c.allowed() {
		return
	}
	c.inbound.Lock()
	defer c.inbound.Unlock()
	if c.ready {
		c.handle(frame)
		return
	}
	if len(c.waiting) == maxWaiting || c.bytes+len(frame) > c.s.cfg.QueueBytes {
		c.tell(fault.New(fault.QueueFull))
		return
	}
	c.bytes += len(frame)
	c.waiting = append(c.waiting, append([]byte(nil), frame...))
}

// allowed applies the rate. A frame over it is refused with an error that says so;
// a client that goes on regardless is cut off.
func (c *conn) allowed() bool {
	if c.limiter.Allow() {
		c.refused = 0
		return true
	}
	c.refused++
	if c.refused > floodFactor*c.s.cfg.MessageBurst {
		c.sock.Finish(closePolicy, "flood")
		return false
	}
	c.tell(fault.New(fault.RateLimited))
	return false
}

// handle turns a frame into commands and sends them. What cannot be done is said in
// the dialect; the socket stays open.
func (c *conn) handle(frame []byte) {
	ctx, span := telemetry.Start(c.s.ctx, "receive "+c.codec.Name(), trace.SpanKindServer)
	err := c.forward(ctx, frame)
	telemetry.End(span, err)
	if err != nil {
		c.tell(c.s.asFault(err))
	}
}

func (c *conn) forward(ctx context.Context, frame []byte) error {
	if err := strictjson.Check(frame); err != nil {
		return err
	}
	p := c.who()
	cmds, err := c.codec.Decode(frame, dialect.Inbound{
		Session: c.session, Principal: p.Subject, NewID: newID, Now: c.s.dep.Clock(),
	})
	if err != nil {
		return err
	}
	for _, cmd := range cmds {
		if cmd.Tenant != p.Tenant {
			return fault.New(fault.Forbidden)
		}
		cmd.Source = "waggle/gateway"
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
	c.sock.Force(wire.Text(c.codec.Fail(f, c.s.dep.Clock())))
}
