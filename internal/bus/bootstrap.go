package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// bootstrapPause spaces the requests of Bootstrap to a cluster that has not elected a leader yet.
	bootstrapPause = 250 * time.Millisecond
	// bootstrapTry bounds one request: a cluster without a leader does not answer.
	bootstrapTry = 5 * time.Second
	// bootstrapReport is the interval at which Bootstrap logs that it waits.
	bootstrapReport = 5 * time.Second
	// bootstrapParallel bounds concurrent creations. More would not help: one leader of the cluster places all
	// streams.
	bootstrapParallel = 4
)

// Bootstrap creates missing streams and buckets and repairs different settings. It refuses a change that NATS cannot
// make to an existing stream, and names the stream and the field. It is idempotent, safe to run from many processes
// at once, and waits within ctx for a cluster that is not ready. It returns ErrPartitions, and changes nothing, if the streams
// have another number of partitions than the connection.
//
// It leaves an existing audit log as it is: see ChangeAudit. If streams are missing, it also replaces those of an earlier
// version: see Replace. It makes no request for a change if nothing differs, so any role that may look at all streams can
// call it then.
func Bootstrap(ctx context.Context, c *Conn, t Topology) error {
	if same(ctx, c, t) {
		return nil
	}
	if err := ensure(ctx, c, subject.RetiredTimers, func(ctx context.Context) error { return freeSubjects(ctx, c) }); err != nil {
		return fmt.Errorf("replace stream %s: %w", subject.RetiredTimers, err)
	}
	if err := create(ctx, c, t); err != nil {
		return err
	}
	return Replace(ctx, c)
}

// same reports whether all streams are known to be as the topology has them.
func same(ctx context.Context, c *Conn, t Topology) bool {
	ctx, cancel := context.WithTimeout(ctx, bootstrapTry)
	defer cancel()
	drift, err := verify(ctx, c, t, nil)
	drift = slices.DeleteFunc(drift, func(d Drift) bool { return d.Audit && d.Cost })
	return err == nil && len(drift) == 0
}

// ChangeAudit changes the settings of the audit log to those of the topology, and nothing else.
func ChangeAudit(ctx context.Context, c *Conn, t Topology) error {
	for _, want := range t.streams(c.partitions) {
		if want.Name == subject.StreamAudit {
			return ensure(ctx, c, want.Name, func(ctx context.Context) error { return ensureStream(ctx, c, want, false) })
		}
	}
	return nil
}

// create creates and repairs all streams.
func create(ctx context.Context, c *Conn, t Topology) error {
	all := t.streams(c.partitions)
	setUp := func(ctx context.Context, want jetstream.StreamConfig) error {
		keep := want.Name == subject.StreamAudit
		err := ensure(ctx, c, want.Name, func(ctx context.Context) error { return ensureStream(ctx, c, want, keep) })
		if err != nil {
			return t.notSetUp(want.Name, all, err)
		}
		return nil
	}
	// The first stream decides the number of partitions between processes that start an installation with different ones.
	if err := setUp(ctx, all[0]); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bootstrapParallel)
	for _, want := range all[1:] {
		g.Go(func() error { return setUp(ctx, want) })
	}
	return g.Wait()
}

// ensure repeats f until the server is ready or refuses.
func ensure(ctx context.Context, c *Conn, what string, f func(context.Context) error) error {
	report := time.Now().Add(bootstrapReport)
	for {
		try, cancel := context.WithTimeout(ctx, bootstrapTry)
		err := f(try)
		cancel()
		if err == nil || !transient(err) {
			return err
		}
		if time.Now().After(report) {
			c.log.Warn().Err(err).Str("stream", what).Msg("waiting for NATS to accept stream")
			report = time.Now().Add(bootstrapReport)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(bootstrapPause):
		}
	}
}

// ensureStream creates or repairs a stream. It leaves an existing stream with other settings as it is if keep is set.
func ensureStream(ctx context.Context, c *Conn, want jetstream.StreamConfig, keep bool) error {
	s, err := c.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = c.js.CreateStream(ctx, want)
		return err
	}
	if err != nil {
		return err
	}
	drift := compare(want, s.CachedInfo().Config)
	if keep {
		drift = significant(drift)
	}
	if keep && len(drift) > 0 {
		c.log.Warn().Str("drift", summary(drift)).Msg("audit log keeps its settings; run \"waggle bootstrap --change-audit-retention\" to change them")
		return nil
	}
	mend, err := mendable(drift)
	if err != nil || !mend {
		return err
	}
	_, err = c.js.UpdateStream(ctx, want)
	return err
}

// mendable reports whether some drift needs a repair. It returns an error for drift that cannot be repaired in place.
func mendable(drift []Drift) (bool, error) {
	if err := otherPartitions(drift); err != nil {
		return false, err
	}
	for _, d := range drift {
		if !d.Fixed {
			return false, fmt.Errorf("%s; NATS cannot change this in place: back up the stream and recreate it", d)
		}
	}
	return len(drift) > 0, nil
}
