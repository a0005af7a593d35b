package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// persistTry bounds one try of Persist: an answer that was lost with the connection never comes, and reading all
	// streams takes a second on a slow machine.
	persistTry = 10 * time.Second
	// persistPause spaces the tries, and those of a clock: a restarting server returns within seconds.
	persistPause = time.Second
	// persistReport is the interval at which Persist logs that it waits.
	persistReport = 10 * time.Second
	// insistTry bounds one try of Insist: an answer that was lost with the connection never comes.
	insistTry = 3 * time.Second
	// insistPause spaces the tries, with jitter, so that callers that waited for the same leader do not return at once.
	insistPause = 100 * time.Millisecond
	// insistDown is the time for which Insist waits for a lost connection. A client finds another server of a cluster in well under a
	// second; with a single server a longer wait would not help the caller.
	insistDown = 3 * time.Second
)

// errNotReady is transient, like a missing leader: another process resolves it.
var errNotReady = errors.New("not ready")

// Persist calls try until it succeeds, and returns its result. It retries after transient errors (a lost connection,
// a missing leader, an answer that takes more than 10 s) and logs waiting every 10 s. Any other error ends it, and so
// does the end of ctx. So a service that starts while NATS restarts waits for it.
func Persist[T any](ctx context.Context, c *Conn, waiting string, try func(context.Context) (T, error)) (T, error) {
	report := time.Now().Add(persistPause) // a single failure does not deserve a log line
	for {
		once, cancel := context.WithTimeout(ctx, persistTry)
		v, err := try(once)
		cancel()
		if err == nil || ctx.Err() == nil && !errors.Is(err, errNotReady) && !transient(err) {
			return v, err
		}
		if now := time.Now(); now.After(report) {
			c.log.Warn().Err(err).Msg(waiting)
			report = now.Add(persistReport)
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(persistPause):
		}
	}
}

// Insist calls try until it succeeds, and returns its result. It serves callers who themselves are waited for: a try takes 3 s at most,
// and a connection that stays lost for 3 s ends it, as the end of ctx does, and every error after which again forbids another try.
// A nil again allows one after the errors after which Persist tries again.
func Insist[T any](ctx context.Context, c *Conn, again func(error) bool, try func(context.Context) (T, error)) (T, error) {
	if again == nil {
		again = transient
	}
	var lost time.Time // when the connection was first seen lost; zero: it is up
	for {
		once, cancel := context.WithTimeout(ctx, insistTry)
		v, err := try(once)
		cancel()
		if err == nil || ctx.Err() != nil || !again(err) {
			return v, err
		}
		switch now := time.Now(); {
		case c.Up():
			lost = time.Time{}
		case lost.IsZero():
			lost = now
		case now.Sub(lost) > insistDown:
			return v, err
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		case <-time.After(insistPause/2 + rand.N(insistPause)): //nolint:gosec // jitter needs no secrecy
		}
	}
}

// Bucket opens a key-value bucket, with the retries of Persist.
func (c *Conn) Bucket(ctx context.Context, name string) (jetstream.KeyValue, error) {
	kv, err := Persist(ctx, c, "waiting for bucket "+name, func(ctx context.Context) (jetstream.KeyValue, error) {
		return c.js.KeyValue(ctx, name)
	})
	if err != nil {
		return nil, fmt.Errorf("open the bucket %s: %w", name, err)
	}
	return kv, nil
}

// Flush returns when the server has processed all earlier subscriptions. It retries as Persist does.
func (c *Conn) Flush(ctx context.Context) error {
	_, err := Persist(ctx, c, "waiting for NATS to accept subscriptions", func(ctx context.Context) (any, error) {
		return nil, c.FlushOnce(ctx)
	})
	return err
}

// FlushOnce is Flush without retries. ctx needs a deadline. A loss of the connection meanwhile is nats.ErrDisconnected.
func (c *Conn) FlushOnce(ctx context.Context) error {
	err := c.nc.FlushWithContext(ctx)
	if errors.Is(err, nats.ErrConnectionClosed) && !c.nc.IsClosed() {
		err = nats.ErrDisconnected // the client says that the connection is closed when it is only lost
	}
	if err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}
