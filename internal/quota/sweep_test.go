package quota

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// However many holdings exist, one sweep reads a few logs, and further sweeps read the others in turn.
func TestASweepReadsFewLogs(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{true, false} {
		most := sweepMost
		if reads {
			most = readMost
		}
		read := map[subject.Quota]int{}
		l := &Ledger{entries: map[subject.Quota]entry{}, rules: Rules{
			Reads: reads, Sweep: time.Millisecond, Now: time.Now,
			Over: func(_ context.Context, q subject.Quota) (bool, error) {
				read[q]++
				return false, nil
			},
		}}
		for i := range 3*most - 1 {
			l.entries[quotaOf(audit.Sessions, id.DefaultTenant, "someone", id.EntityFromExternal(fmt.Sprint("s", i)))] = entry{n: 1}
		}
		for sweep := range 3 {
			l.sweepOnce(t.Context())
			require.Len(t, read, min((sweep+1)*most, len(l.entries)))
		}
		for _, n := range read {
			require.Equal(t, 1, n)
		}
		l.sweepOnce(t.Context())
		require.Len(t, read, len(l.entries), "it begins again")
	}
}
