package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

const (
	// bootstrapPause is how long Bootstrap waits before it asks again a cluster that
	// has no leader yet.
	bootstrapPause = 250 * time.Millisecond
	// bootstrapTry bounds one request: a cluster without a leader does not answer.
	bootstrapTry = 5 * time.Second
	// bootstrapReport is how often Bootstrap says that it is waiting.
	bootstrapReport = 5 * time.Second
	// bootstrapParallel streams are made at once. More do not help: one leader of the
	// cluster places them all.
	bootstrapParallel = 4
)

// Codes of server errors that nats.go has no name for.
const (
	codeNoPeers     jetstream.ErrorCode = 10005 // servers for the replicas are missing, perhaps still starting
	codeNoResources jetstream.ErrorCode = 10023 // the disk or the account is too small
)

// Bootstrap creates what is missing and mends what differs. It refuses, with the
// names of stream and field, what NATS cannot change on a stream that exists. It is
// idempotent, safe to run from many processes at once, and waits within ctx for a
// cluster that is not ready.
func Bootstrap(ctx context.Context, c *Conn, t Topology) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bootstrapParallel)
	for _, want := range t.streams() {
		g.Go(func() error {
			err := ensure(ctx, c, want.Name, func(ctx context.Context) error { return ensureStream(ctx, c, want) })
			if err != nil {
				return fmt.Errorf("set up stream %s: %w", want.Name, err)
			}
			return nil
		})
	}
	for _, kv := range t.buckets() {
		g.Go(func() error {
			err := ensure(ctx, c, kv.Bucket, func(ctx context.Context) error { return ensureBucket(ctx, c, kv) })
			if err != nil {
				return fmt.Errorf("set up bucket %s: %w", kv.Bucket, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// ensure repeats f while the server says that it is not ready.
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
			c.log.Warn().Err(err).Str("stream", what).Msg("wait for NATS to accept stream")
			report = time.Now().Add(bootstrapReport)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(bootstrapPause):
		}
	}
}

// transient reports whether err may pass by itself: no leader yet, servers missing,
// or another process that is making the same stream at this moment.
func transient(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case codeNoResources:
			return false
		case codeNoPeers, jetstream.JSErrCodeStreamNameInUse:
			return true
		}
		return api.Code == 503
	}
	for _, passing := range []error{
		nats.ErrTimeout, nats.ErrNoResponders, context.DeadlineExceeded, nats.ErrDisconnected,
		nats.ErrReconnectBufExceeded, nats.ErrConnectionReconnecting, jetstream.ErrNoStreamResponse,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}

func ensureStream(ctx context.Context, c *Conn, want jetstream.StreamConfig) error {
	s, err := c.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = c.js.CreateStream(ctx, want)
		return err
	}
	if err != nil {
		return err
	}
	mend, err := mendable(compare(want, s.CachedInfo().Config))
	if err != nil || !mend {
		return err
	}
	_, err = c.js.UpdateStream(ctx, want)
	return err
}

func ensureBucket(ctx context.Context, c *Conn, want jetstream.KeyValueConfig) error {
	s, err := c.js.Stream(ctx, bucketStream(want))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = c.js.CreateKeyValue(ctx, want)
		if errors.Is(err, jetstream.ErrBucketExists) {
			return nil // another process was faster; it has the same code
		}
		return err
	}
	if err != nil {
		return err
	}
	mend, err := mendable(compareBucket(want, s.CachedInfo().Config))
	if err != nil || !mend {
		return err
	}
	_, err = c.js.UpdateKeyValue(ctx, want)
	return err
}

// mendable reports whether there is drift to mend, or an error for drift that
// cannot be mended in place.
func mendable(drift []Drift) (bool, error) {
	for _, d := range drift {
		if !d.Fixed {
			return false, fmt.Errorf("%s; NATS cannot change this in place: back the stream up and make it anew", d)
		}
	}
	return len(drift) > 0, nil
}
