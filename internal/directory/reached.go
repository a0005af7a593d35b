package directory

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// catchUp bounds the time in which a copy must reach a revision: far longer than a write takes to arrive, shorter
// than an election after a lost leader.
const catchUp = 3 * time.Second

// doubt is the wait for a revision after which the copy is read again: a write takes milliseconds to arrive, unless the
// server that passes the writes on to this copy has gone.
const doubt = 500 * time.Millisecond

// headerRevision carries the revision of the directory that the sender of a request has seen.
const headerRevision = "Waggle-Directory"

// errBehind means that a copy has not reached a revision in time.
var errBehind = errors.New("this copy of the directory is behind")

// Revision returns the revision of the newest write in this copy, which all its watchers have seen, too.
func (d *Directory) Revision() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.revision
}

// Reach waits until this copy has the revision, for 3 s at most, so that the answer to a request is at least as new
// as the state that its sender has seen.
func (d *Directory) Reach(ctx context.Context, revision uint64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, catchUp, errBehind)
	defer cancel()
	return d.await(ctx, revision)
}

// await waits until this copy has the revision, or returns ctx's cause.
func (d *Directory) await(ctx context.Context, revision uint64) error {
	d.mu.Lock()
	if d.revision >= revision {
		d.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	d.reaches[done] = revision
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.reaches, done)
	}()
	doubts := time.NewTicker(doubt)
	defer doubts.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-doubts.C:
			d.copy.Doubt()
		case <-ctx.Done():
			return fmt.Errorf("wait for revision %d of the directory: %w", revision, context.Cause(ctx))
		case <-d.copy.Done():
			return fmt.Errorf("wait for revision %d of the directory: it is closed", revision)
		}
	}
}

type seenKey struct{}

// Seen returns a context for requests whose sender has seen the revision.
func Seen(ctx context.Context, revision uint64) context.Context {
	return context.WithValue(ctx, seenKey{}, revision)
}

// Inject writes the revision of ctx, if it has one, into a request.
func Inject(ctx context.Context, h nats.Header) {
	if revision, ok := ctx.Value(seenKey{}).(uint64); ok && revision > 0 {
		h.Set(headerRevision, strconv.FormatUint(revision, 10))
	}
}

// Extract returns the context of a request and the revision that its sender has seen, or 0 if the request does not
// carry one.
func Extract(ctx context.Context, h map[string][]string) (context.Context, uint64) {
	revision, err := strconv.ParseUint(nats.Header(h).Get(headerRevision), 10, 64)
	if err != nil || revision == 0 {
		return ctx, 0
	}
	return Seen(ctx, revision), revision
}
