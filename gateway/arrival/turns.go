package arrival

import (
	"net"
	"net/http"
	"sync/atomic"

	"github.com/waggle-dev/waggle/gateway/admission"
)

// sendBuffer bounds what the kernel keeps for a client that does not read, which would be 4 MB otherwise. It doubles the
// figure, and the result carries 2.5 MB/s over a round trip of 100 ms.
const sendBuffer = 128 << 10

type listener struct {
	net.Listener

	lane *admission.Lane
	turn *admission.Turn // of what a new connection costs
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	l.turn.Leave()
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.turn.Take(admission.Arriving)
	t := &turning{Conn: nc, turn: l.lane.Turn()}
	t.clean.Store(true)
	if tcp, ok := t.Raw().(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // not fatal: it is the kernel's memory
	}
	return t, nil
}

// Phases of a connection that takes turns.
const (
	waiting  = int32(iota) // for a request, or for the first message of a socket
	working                // on a request
	admitted               // the client has authenticated
)

// turning is a connection that takes a turn when it has read something, and gives it up before it waits: to read on, or to
// write.
type turning struct {
	net.Conn

	turn  *admission.Turn
	known atomic.Bool // the client of the last request had authenticated
	clean atomic.Bool // no handler has begun since the last answer ended: http.Server alone writes
	phase atomic.Int32
}

// Read implements net.Conn.
func (t *turning) Read(p []byte) (int, error) {
	phase := t.phase.Load()
	if phase == admitted || phase == working && len(p) == 1 { // http.Server looks for the end of the connection meanwhile
		return t.Conn.Read(p)
	}
	t.turn.Leave()
	n, err := t.Conn.Read(p)
	if t.phase.Load() != admitted {
		t.turn.Take(t.class())
	}
	return n, err
}

// Write implements net.Conn.
func (t *turning) Write(p []byte) (int, error) {
	if t.phase.Load() != admitted {
		t.turn.Leave()
	}
	if whole := guarded(p); whole != nil && t.clean.Load() {
		if _, err := t.Conn.Write(whole); err != nil {
			return 0, err
		}
		return len(p), nil
	}
	return t.Conn.Write(p)
}

// CloseWrite lets http.Server close one half first, so that clients read an answer to a request that was not read.
func (t *turning) CloseWrite() error {
	if c, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

// Raw returns the connection of the kernel.
func (t *turning) Raw() net.Conn { return beneath(t.Conn) }

func (t *turning) class() admission.Class {
	if t.known.Load() {
		return admission.Known
	}
	return admission.Strange
}

// changed follows the state of the connection.
func (t *turning) changed(state http.ConnState) {
	switch state {
	case http.StateActive:
		t.phase.Store(working)
		t.turn.Take(t.class()) // http.Server had read the request along with an earlier one
		t.known.Store(false)
	case http.StateIdle, http.StateClosed:
		t.clean.Store(true)
		t.phase.Store(waiting)
		t.turn.Leave()
	case http.StateHijacked: // the client of the socket may have authenticated
		t.phase.CompareAndSwap(working, waiting)
		t.turn.Leave()
	case http.StateNew:
	}
}

// admit notes that the client of the request, or of the socket, has authenticated.
func (t *turning) admit() {
	t.known.Store(true)
	t.phase.Store(admitted)
	t.turn.Leave()
}

// beneath returns the connection under a PROXY protocol.
func beneath(nc net.Conn) net.Conn {
	if p, ok := nc.(interface{ Raw() net.Conn }); ok {
		return p.Raw()
	}
	return nc
}
