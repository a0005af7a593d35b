// Package freeport reserves loopback ports for tests that have to name a port before something listens on it.
//
// A port that the system chose and that was closed again is not free for long: the system gives it to the next outgoing
// connection, and a server that starts or restarts there fails with "address already in use". The ports of this package lie
// below the range from which Linux, macOS and Windows take ports, and no two tests on the machine have the same one.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The range that ports come from. It ends below 30000, where Kubernetes begins.
const (
	lowest  = 14000
	highest = 29999
	tries   = 1000
)

// Reserve returns a TCP port of 127.0.0.1 without a listener. Until release is called, or the process ends, no other caller
// on the machine gets the same port. The reservation is the UDP port of the same number. It is safe for concurrent use.
func Reserve() (port int, release func(), err error) {
	for range tries {
		port = lowest + rand.IntN(highest-lowest+1) //nolint:gosec // not a secret
		if release, ok := reserve(port); ok {
			return port, release, nil
		}
	}
	return 0, nil, errors.New("freeport: no free port of 127.0.0.1 between 14000 and 29999")
}

func reserve(port int) (release func(), ok bool) {
	at := addr(port)
	held, err := net.ListenPacket("udp4", at) //nolint:noctx // loopback, at once
	if err != nil {
		return nil, false
	}
	l, err := net.Listen("tcp4", at) //nolint:noctx // loopback, at once
	if err != nil {
		_ = held.Close()
		return nil, false
	}
	_ = l.Close()
	return func() { _ = held.Close() }, true
}

// Port returns a port that is the test's until its end.
func Port(t testing.TB) int {
	t.Helper()
	port, release, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// Ports returns n different ports that are the test's until its end.
func Ports(t testing.TB, n int) []int {
	t.Helper()
	out := make([]int, n)
	for i := range out {
		out[i] = Port(t)
	}
	return out
}

// Addr returns an address of 127.0.0.1 that is the test's until its end.
func Addr(t testing.TB) string {
	t.Helper()
	return addr(Port(t))
}

func addr(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
