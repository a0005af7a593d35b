package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAGatewayWithoutClientsSendsNoPings: it has no bus here. The next client is not told of
// workers that were missing before it came.
func TestAGatewayWithoutClientsSendsNoPings(t *testing.T) {
	s := &Server{}
	s.workers.missed = missedPings
	s.workers.missing.Store(true)
	s.checkWorkers()
	require.Zero(t, s.workers.missed)
	require.False(t, s.workers.missing.Load())
}
