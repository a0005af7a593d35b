package gateway

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// accept returns the handler that opens the sockets of a route.
func (s *Server) accept(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.problem(w, fault.New(fault.NotFound))
			return
		}
		c := newConn(s, route, r)
		if s.upgrade(c, w, r) {
			s.short.Go(c.serve) // the socket outlives its request: the handler returns, which frees its request and stack
		}
	}
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

// conclude waits until the socket, which is closing, has ended, and records its end.
func (c *conn) conclude() {
	c.arrival.Yield()
	<-c.Done()
	c.backlog.done()
	c.binding.Close()
	c.s.met.closed(c.CloseCode())
	c.ended()
}

// failed ends the socket for a fault; any other error means that it has ended.
func (c *conn) failed(err error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		c.End(f)
		return
	}
	c.s.dep.Logger.Debug().Err(err).Msg("connection closed")
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
	c.client.RecordConnected()
	c.Limit(c.policy.Limits)
	return c.binding.Begin()
}

// identify takes the credentials of the first message, {"type":"auth",
// "token":"..."}, unless the handshake carried some.
func (c *conn) identify() error {
	if c.client.Identified() {
		return nil
	}
	message, err := c.Read()
	if err != nil {
		return err
	}
	var m map[string]json.RawMessage // a struct would also take "TOKEN" for token
	var kind, token string
	if strictjson.Check(message) != nil || json.Unmarshal(message, &m) != nil ||
		json.Unmarshal(m["type"], &kind) != nil || kind != authMessage || json.Unmarshal(m["token"], &token) != nil {
		return fault.New(fault.Unauthenticated)
	}
	if err := c.authenticate(c.arrival.Within(c.ctx), token); err != nil {
		return c.FaultOf(err)
	}
	return nil
}
