package bus

import (
	"context"
	"fmt"
)

// Await returns once the named streams, or all if none is named, are as the topology
// has them. It changes nothing: somebody else bootstraps. Until then it looks again and
// logs what is missing or different; it gives up only when ctx ends.
func Await(ctx context.Context, c *Conn, t Topology, streams ...string) error {
	_, err := Persist(ctx, c, "waiting for the streams; \"waggle bootstrap\" makes and mends them", func(ctx context.Context) (any, error) {
		drift, err := verify(ctx, c, t, streams)
		if err == nil && len(drift) > 0 {
			err = fmt.Errorf("the streams are %w: %s", errNotReady, summary(drift))
		}
		return nil, err
	})
	return err
}

// summary names the first drift and how many more there are.
func summary(drift []Drift) string {
	if n := len(drift) - 1; n > 0 {
		return fmt.Sprintf("%s, and %d more", drift[0], n)
	}
	return drift[0].String()
}
