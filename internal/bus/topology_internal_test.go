package bus

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
)

// Where events have a bound, streams that have something for each log have one, too: they must not fill the volume that events
// cannot fill.
func TestStreamsForEachLogAreBoundedWithTheEvents(t *testing.T) {
	t.Parallel()
	type bounds struct{ index, folds, acks, quota, session, team int64 } // in MiB
	for events, want := range map[int64]bounds{
		0:        {},
		1 << 20:  {128, 128, 64, 64, 128, 64},
		2 << 30:  {256, 128, 64, 64, 128, 64},
		16 << 30: {2048, 1024, 512, 512, 1024, 512},
	} {
		top := Topology{EventMaxBytes: events}
		require.Equal(t, want, bounds{
			top.index().MaxBytes >> 20, top.folds().MaxBytes >> 20, top.acks().MaxBytes >> 20, top.quota("quota_sessions").MaxBytes >> 20,
			top.timers(command.Session).MaxBytes >> 20, top.timers(command.Team).MaxBytes >> 20,
		})
	}
}
