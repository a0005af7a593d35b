//go:build nightly

package stream

import (
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/orbit"
)

// Handing an encoded entry to one more viewer, up to the bytes in
// the socket, allocates nothing.
func TestGateNoAllocationPerFrame(t *testing.T) {
	codec, err := orbit.Dialect().Bind(nil)
	require.NoError(t, err)
	f, sock := fed(t, codec, 64<<20, io.Discard)
	batch, taken := entries(t, 1), 0
	require.Equal(t, 1, f.Deliver(batch))
	require.Zero(t, testing.AllocsPerRun(2000, func() {
		taken += f.Deliver(batch)
		for sock.Queued() > 0 { // so that each frame is a write of its own
			runtime.Gosched()
		}
	}))
	require.Equal(t, 2001, taken)
}
