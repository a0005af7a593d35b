package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAGatewayWithoutClientsSendsNoPings: it has no bus here. The next client is not told of
// workers that were missing before it came.
func TestAGatewayWithoutClientsSendsNoPings(t *testing.T) {
	w := &workerWatch{needed: func() bool { return false }}
	w.missed = missedPings
	w.missing.Store(true)
	w.check(t.Context())
	require.Zero(t, w.missed)
	require.False(t, w.gone())
}
