package bus

import (
	"context"
	"fmt"
	"time"
)

const (
	// awaitPause spaces the looks of Await: whoever bootstraps takes seconds.
	awaitPause = time.Second
	// awaitReport is how often Await says what it waits for.
	awaitReport = 10 * time.Second
)

// Await returns once the named streams, or all if none is named, are as the topology
// has them. It changes nothing: somebody else bootstraps. Until then it looks again and
// logs what is missing or different; it gives up only when ctx ends.
func Await(ctx context.Context, c *Conn, t Topology, streams ...string) error {
	var report time.Time
	for {
		try, cancel := context.WithTimeout(ctx, awaitReport)
		drift, err := verify(try, c, t, streams)
		cancel()
		switch {
		case err == nil && len(drift) == 0:
			return nil
		case err != nil && ctx.Err() == nil && !transient(err):
			return err
		case err == nil:
			err = fmt.Errorf("the streams are not ready: %s", summary(drift))
		}
		if time.Now().After(report) {
			c.log.Warn().Err(err).Msg("waiting for the streams; \"waggle bootstrap\" makes and mends them")
			report = time.Now().Add(awaitReport)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(awaitPause):
		}
	}
}

// summary names the first drift and how many more there are.
func summary(drift []Drift) string {
	if n := len(drift) - 1; n > 0 {
		return fmt.Sprintf("%s, and %d more", drift[0], n)
	}
	return drift[0].String()
}
