package doctor

import (
	"context"
	"time"
)

// Examine runs all checks in order and passes each finding to report at once.
func Examine(ctx context.Context, p Patient, report func(Finding)) {
	type check func(context.Context, Patient) []Finding
	for _, c := range []struct {
		look  check
		limit time.Duration
	}{
		{configuration, maxWait},
		{environment, maxWait},
		{workspace, maxWait},
		{confinement, maxWait},
		{model, maxWait},
		{onBus, busMaxWait},
		{gateway, maxWait},
	} {
		for _, f := range bounded(ctx, p, c.limit, c.look) {
			report(f)
		}
	}
}
