//go:build unix

package ws

import (
	"errors"
	"syscall"
)

// attempt is one write that must not block. A shard has one and uses it again and
// again, so that a write allocates nothing.
type attempt struct {
	p    []byte
	n    int
	err  error
	call func(fd uintptr) bool
}

func newAttempt() *attempt {
	a := &attempt{}
	a.call = func(fd uintptr) bool {
		a.n, a.err = writeNow(fd, a.p)
		return true
	}
	return a
}

// writeNow writes what the socket takes at once: Go's sockets never block.
func writeNow(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), p)
		switch {
		case n > 0:
			return n, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		default:
			return 0, err
		}
	}
}
