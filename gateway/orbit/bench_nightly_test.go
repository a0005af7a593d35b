//go:build nightly

package orbit_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/orbit"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

func TestEncodingADeltaIsCheap(t *testing.T) {
	codec, err := orbit.Dialect().Bind(url.Values{"deltas": {"true"}})
	require.NoError(t, err)
	for _, e := range eventsOf(t, "deltas") {
		if e.Type == event.MessageDelta {
			n := testing.AllocsPerRun(100, func() { codec.Encode(e) })
			require.LessOrEqual(t, n, float64(maxAllocs))
		}
	}
}
