package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Where events have a bound, the index has one, too: it must not fill the volume that they cannot fill.
func TestTheIndexIsBoundedWithTheEvents(t *testing.T) {
	t.Parallel()
	for events, want := range map[int64]int64{0: 0, 1 << 20: 128 << 20, 2 << 30: 256 << 20, 16 << 30: 2 << 30} {
		require.Equal(t, want, Topology{EventMaxBytes: events}.index().MaxBytes)
	}
}
