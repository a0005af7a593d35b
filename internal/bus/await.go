package bus

import (
	"context"
	"fmt"
	"slices"
)

// Await waits until the named streams, or all streams if names is empty, match the topology. It changes nothing,
// because another process runs the bootstrap. It checks again until then, logs missing and different streams, and
// gives up only when ctx ends, or with ErrPartitions.
func Await(ctx context.Context, c *Conn, t Topology, streams ...string) error {
	_, err := Persist(ctx, c, "waiting for streams; run \"waggle bootstrap\" to create or repair them", func(ctx context.Context) (any, error) {
		drift, err := verify(ctx, c, t, streams)
		drift = slices.DeleteFunc(significant(drift), func(d Drift) bool { return d.Audit }) // the operator decides on it
		if err == nil {
			err = otherPartitions(drift)
		}
		if err == nil && len(drift) > 0 {
			err = fmt.Errorf("the streams are %w: %s", errNotReady, summary(drift))
		}
		return nil, err
	})
	return err
}

// summary returns the first drift and the number of further ones.
func summary(drift []Drift) string {
	if n := len(drift) - 1; n > 0 {
		return fmt.Sprintf("%s, and %d more", drift[0], n)
	}
	return drift[0].String()
}
