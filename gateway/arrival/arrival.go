// Package arrival bounds the accepted TCP connections that have not become sockets, and the sockets that have not
// authenticated.
package arrival

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/answer"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// idleShare of the limit of connections may be open between two requests of authenticated
// clients.
const idleShare = 4

// Table holds the accepted TCP connections that have not become sockets, and the sockets that have not
// authenticated. Each that another may displace is in a pool: strangers never keep out clients
// with credentials.
type Table struct {
	Strangers *admission.Pool // have not authenticated
	idle      *admission.Pool // have, and wait for their next request
	Ending    *admission.Pool // evicted sockets, which may still read why
	lane      *admission.Lane

	mu  sync.Mutex
	all map[net.Conn]*Connection // without sockets
	max int                      // of all
}

// New returns the table of a gateway that holds as many sockets as the limit.
func New(limit int) *Table {
	strangers := admission.PoolSize(limit)
	return &Table{
		Strangers: admission.NewPool(strangers), idle: admission.NewPool(max(strangers, limit/idleShare)), Ending: admission.NewPool(strangers),
		lane: admission.NewLane(), all: map[net.Conn]*Connection{}, max: limit + limit/idleShare + 2*strangers,
	}
}

// Listen returns a listener of connections that take turns until their clients have authenticated.
func (s *Table) Listen(l net.Listener) net.Listener {
	return &listener{Listener: l, lane: s.lane, turn: s.lane.Turn()}
}

// Connection is one accepted TCP connection, until it ends.
type Connection struct {
	of *Table
	nc net.Conn
	in *turning // nil for a connection of another listener than Listen's

	mu     sync.Mutex
	resets *rate.Limiter // of requests that the client of HTTP/2 drops; nil until the first
	fresh  bool          // has sent no request
	known  bool          // the client of its last request has authenticated
	entry  *admission.Entry
	end    func() // ends the socket that the connection has become, if it has
	turns  bool   // it is becoming one: its client reads the reason of an eviction there
	due    bool   // it was evicted meanwhile
}

type key struct{}

// Of returns the TCP connection of a request.
func Of(r *http.Request) *Connection {
	a, _ := r.Context().Value(key{}).(*Connection)
	return a
}

// Accept adds a connection. http.Server calls it before it reads.
func (s *Table) Accept(ctx context.Context, nc net.Conn) context.Context {
	a := &Connection{of: s, nc: nc, fresh: true}
	if a.in, _ = nc.(*turning); a.in != nil {
		ctx = a.in.turn.Within(ctx)
	}
	s.mu.Lock()
	full := len(s.all) >= s.max
	s.all[nc] = a
	s.mu.Unlock()
	if full && !s.Strangers.Evict() && !s.idle.Evict() {
		_ = nc.Close() // all others work for clients with credentials
	}
	a.enter(s.Strangers)
	return context.WithValue(ctx, key{}, a)
}

// Changed follows the state of a connection. http.Server calls it.
func (s *Table) Changed(nc net.Conn, state http.ConnState) {
	s.mu.Lock()
	a := s.all[nc]
	if state == http.StateHijacked || state == http.StateClosed {
		delete(s.all, nc)
	}
	s.mu.Unlock()
	if a != nil {
		a.changed(state)
	}
}

func (a *Connection) changed(state http.ConnState) {
	if a.in != nil {
		a.in.changed(state)
	}
	switch state {
	case http.StateActive: // a request, which has to authenticate anew
		a.mu.Lock()
		again := !a.fresh
		a.fresh, a.known = false, false
		a.mu.Unlock()
		if again {
			a.enter(a.of.Strangers)
		}
	case http.StateIdle:
		a.mu.Lock()
		pool := a.of.Strangers
		if a.known {
			pool = a.of.idle
		}
		a.mu.Unlock()
		a.enter(pool)
	case http.StateClosed:
		a.leave()
	case http.StateNew, http.StateHijacked:
	}
}

// enter puts the connection into a pool as its youngest member. It leaves its place first: a request on a connection that
// is there already displaces no other.
func (a *Connection) enter(pool *admission.Pool) {
	a.leave()
	e := pool.Enter(a.evict)
	a.mu.Lock()
	a.entry = e
	a.mu.Unlock()
}

// leave takes the connection out of its pool.
func (a *Connection) leave() {
	a.mu.Lock()
	e := a.entry
	a.entry = nil
	a.mu.Unlock()
	if e != nil {
		e.Leave()
	}
}

// Admitted notes that the client of the request or of the socket has authenticated.
func (a *Connection) Admitted() {
	if a == nil { // of a handler that is tested without a server
		return
	}
	if a.in != nil {
		a.in.admit()
	}
	a.mu.Lock()
	a.known = true
	a.mu.Unlock()
	a.leave()
}

// Probed notes that the request asks whether the gateway is ready. However many strangers come meanwhile, it is answered.
func (a *Connection) Probed() {
	if a != nil {
		a.Yield()
		a.leave()
	}
}

// Within returns a context of work that is done in the connection's turn.
func (a *Connection) Within(ctx context.Context) context.Context {
	if a == nil || a.in == nil {
		return ctx
	}
	return a.in.turn.Within(ctx)
}

// Yield gives up the connection's turn: what is left of the work waits.
func (a *Connection) Yield() {
	if a != nil && a.in != nil {
		a.in.turn.Leave()
	}
}

// Upgrades notes that the connection is becoming a socket. An eviction waits for Becomes.
func (a *Connection) Upgrades() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns = true
}

// Becomes says how to end the socket that the connection has become; nil if the handshake failed.
func (a *Connection) Becomes(end func()) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.end, a.turns = end, false
	due := a.due
	a.due = false
	a.mu.Unlock()
	if due {
		a.evict()
	}
}

// Ended notes the end of the socket that the connection has become.
func (a *Connection) Ended() {
	if a != nil {
		a.Yield()
		a.leave()
	}
}

// evict ends the connection to make room for a younger one.
func (a *Connection) evict() {
	a.mu.Lock()
	end := a.end
	switch {
	case a.turns:
		a.due = true
	case end == nil:
		a.hangUp()
	}
	a.mu.Unlock()
	if end != nil {
		end()
	}
}

// hangUp closes the connection, with the reason if the server has written nothing. The caller has locked.
func (a *Connection) hangUp() {
	nc := beneath(a.nc)
	if a.fresh { // the answer fits into the buffer of the kernel
		_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = nc.Write(evicted)
	}
	_ = nc.Close()
}

// Evicted returns the fault of a connection that has waited longest of all that have not
// authenticated.
func Evicted() *fault.Fault {
	return fault.Newf(fault.Overloaded, "Too many connections have not authenticated, and this one is the oldest. Reconnect and send credentials immediately.")
}

// evicted is the answer to a connection that has sent no request.
var evicted = answer.Raw(Evicted())
