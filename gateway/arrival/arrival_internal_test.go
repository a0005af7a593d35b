package arrival

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/admission"
)

// TestAnEvictionDuringTheHandshakeWaits: the client of a socket reads the reason, also if its connection is evicted before the
// gateway has the socket. A failed handshake ends the connection.
func TestAnEvictionDuringTheHandshakeWaits(t *testing.T) {
	for name, succeeds := range map[string]bool{"a socket": true, "a failed handshake": false} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer func() { _, _ = ours.Close(), theirs.Close() }()
			strangers := admission.NewPool(1)
			require.NoError(t, theirs.SetReadDeadline(time.Now().Add(-time.Second)))
			a := &Connection{of: &Table{Strangers: strangers}, nc: ours}
			a.enter(strangers)
			a.changed(http.StateActive)
			a.Upgrades()
			strangers.Enter(func() {})
			require.EqualValues(t, 1, strangers.Evicted())
			_, err := theirs.Read(make([]byte, 1))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is open")
			require.NoError(t, theirs.SetReadDeadline(time.Time{}))

			if succeeds {
				told := 0
				a.Becomes(func() { told++ })
				require.Equal(t, 1, told)
				return
			}
			a.Becomes(nil)
			_, err = theirs.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

// TestIdleConnectionsHaveAPool: those that wait between two authenticated requests displace the oldest of their kind, and
// strangers displace none of them.
func TestIdleConnectionsHaveAPool(t *testing.T) {
	s := &Table{Strangers: admission.NewPool(2), idle: admission.NewPool(3), all: map[net.Conn]*Connection{}, max: 100}
	open := func() (ours, theirs net.Conn, a *Connection) {
		ours, theirs = net.Pipe()
		t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
		require.NoError(t, theirs.SetReadDeadline(time.Now().Add(-time.Second)))
		a, ok := s.Accept(context.Background(), ours).Value(key{}).(*Connection)
		require.True(t, ok)
		return ours, theirs, a
	}
	closed := func(theirs net.Conn) bool {
		_, err := theirs.Read(make([]byte, 1))
		return err == io.EOF //nolint:errorlint // a pipe returns it bare
	}
	request := func(ours net.Conn, a *Connection) {
		s.Changed(ours, http.StateActive)
		a.Admitted()
		s.Changed(ours, http.StateIdle)
	}
	var ends []net.Conn
	var first net.Conn
	var again *Connection
	for n := range 5 {
		ours, theirs, a := open()
		request(ours, a)
		if ends = append(ends, theirs); n == 2 {
			first, again = ours, a
		}
	}
	require.EqualValues(t, 2, s.idle.Evicted())
	require.Zero(t, s.Strangers.Evicted())
	for n, theirs := range ends {
		require.Equal(t, n < 2, closed(theirs), n)
	}
	for range 5 { // strangers that say nothing
		open()
	}
	require.EqualValues(t, 3, s.Strangers.Evicted())
	request(first, again) // the oldest one is the youngest now
	ours, _, a := open()
	request(ours, a)
	require.False(t, closed(ends[2]))
	require.True(t, closed(ends[3]))
}
