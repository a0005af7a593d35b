package ws

import "net"

// sink is the way out of a socket. Only one goroutine at a time uses it.
type sink interface {
	// try writes what the network takes at once; 0 with nil when that is nothing.
	try(a *attempt, p []byte) (int, error)
	// push writes all of p and may block; moved is called as it gets on. The
	// connection's end makes it fail.
	push(p []byte, moved func()) error
}

// plain writes to a connection that can only be written to blockingly, as TLS.
type plain struct{ net.Conn }

func (plain) try(*attempt, []byte) (int, error) { return 0, nil }

func (o plain) push(p []byte, moved func()) error {
	for len(p) > 0 {
		n, err := o.Write(p[:min(piece, len(p))])
		if n > 0 {
			moved()
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// beneath returns the connection under a PROXY protocol, which changes nothing of what is written.
func beneath(nc net.Conn) net.Conn {
	if p, ok := nc.(interface{ Raw() net.Conn }); ok {
		return p.Raw()
	}
	return nc
}
