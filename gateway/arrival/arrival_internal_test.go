package arrival

import (
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
