package bus

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
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

// The chart and OPERATIONS.md say how much space streams other than those of events reserve.
func TestReservedSpaceBesideEvents(t *testing.T) {
	t.Parallel()
	for events, most := range map[int64]int64{2 << 30: 2<<30/8 + 2<<30, 64 << 30: 64<<30/10*6 + 2<<30} {
		top, sum := Topology{EventMaxBytes: events, CommandMaxBytes: 64 << 20, AuditMaxBytes: DefaultAuditMaxBytes}, int64(0)
		for _, s := range top.streams(subject.DefaultPartitions) {
			sum += s.MaxBytes
		}
		beside := sum - int64(subject.DefaultPartitions)*events
		require.Positive(t, beside)
		require.LessOrEqual(t, beside, most)
	}
}
