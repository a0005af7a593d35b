//go:build unix

package ws

import (
	"net"
	"syscall"
)

// raw writes to a connection whose descriptor can be had.
type raw struct{ syscall.RawConn }

func sinkOf(nc net.Conn) sink {
	if sc, ok := nc.(syscall.Conn); ok {
		if rc, err := sc.SyscallConn(); err == nil {
			return raw{rc}
		}
	}
	return plain{nc}
}

func (o raw) try(a *attempt, p []byte) (int, error) {
	a.p, a.n, a.err = p, 0, nil
	err := o.Write(a.call)
	a.p = nil
	if err == nil {
		err = a.err
	}
	return a.n, err
}

func (o raw) push(p []byte, moved func()) error {
	var failed error
	err := o.Write(func(fd uintptr) bool {
		for len(p) > 0 {
			n, err := writeNow(fd, p)
			if err != nil {
				failed = err
				return true
			}
			if n == 0 {
				return false // the caller tries again when the socket has room
			}
			p = p[n:]
			moved()
		}
		return true
	})
	if err == nil {
		err = failed
	}
	return err
}
