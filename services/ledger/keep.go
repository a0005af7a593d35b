package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// snapshotTime bounds the time for which a slow bus may delay the next use of the log.
	snapshotTime = 5 * time.Second
	// A replica of the bucket may lag behind a snapshot that was just stored: Erase looks again.
	eraseTries = 5
	erasePause = 50 * time.Millisecond
)

// load returns the usable snapshot of a log with its state, or nil. A snapshot that ends after the end is of another log.
func (x *Snapshots[S]) load(ctx context.Context, log subject.Log, end uint64) (s *snapshot, state *S, at place) {
	if x.kv == nil {
		return nil, nil, at
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	s, at, err := x.get(ctx, log)
	if err == nil && s == nil {
		return nil, nil, at
	}
	if err == nil && len(s.Parts) > 0 {
		s, err = x.join(ctx, log, s)
	}
	if err == nil {
		state, err = x.Decode(s.State)
	}
	if err != nil || s.Seq == 0 || s.Seq > end || s.Stream == 0 || x.Seq(state) != s.Seq {
		x.Logger.Info().Err(err).Stringer("log", log).Msg("snapshot unusable; log will be read from its beginning")
		return nil, nil, at
	}
	return s, state, at
}

// store stores the snapshot of a log after the event at the position, unless a later one is there or the log was erased.
func (x *Snapshots[S]) store(ctx context.Context, log subject.Log, at eventlog.Cursor, eventID string, state *S, was place) place {
	if x.kv == nil || at.Stream == 0 {
		return was
	}
	if now, other := x.others(ctx, log, was); other {
		return now
	}
	folded, err := x.Encode(state)
	if err == nil && folded == nil {
		return was
	}
	one := snapshot{Seq: at.Seq, Stream: at.Stream, Event: eventID, State: folded}
	var raw []byte
	if err == nil {
		raw, err = pack(one)
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	if err == nil {
		was, err = x.put(ctx, log, one, raw, was)
	}
	if err != nil {
		x.Logger.Warn().Err(err).Stringer("log", log).Int("bytes", len(raw)).Msg("failed to store snapshot")
	}
	return was
}

// others reports whether another holder of the log stores its snapshots: it has replaced the one that the caller knows. Then the
// caller waits for its next turn, because a snapshot costs much more than this look.
func (x *Snapshots[S]) others(ctx context.Context, log subject.Log, was place) (place, bool) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	e, err := x.packed(ctx, log)
	if err != nil || e == nil || e.Revision() <= was.rev {
		return was, false
	}
	_, now, err := opened(e)
	return now, err == nil
}

// put stores a packed snapshot over the one whose revision the caller knows. A revision that has changed is looked up: a
// snapshot that ends later, or none because the log was erased, stays.
func (x *Snapshots[S]) put(ctx context.Context, log subject.Log, one snapshot, raw []byte, was place) (place, error) {
	for try := 0; ; try++ {
		now, err := x.replace(ctx, log, one, raw, was)
		if err == nil || !errors.Is(err, jetstream.ErrKeyRevisionMismatch) || try > 0 {
			return now, err
		}
		other, now, err := x.get(ctx, log)
		if was = now; was.rev == 0 || err == nil && other.Seq >= one.Seq {
			return was, nil
		}
	}
}

// replace stores a packed snapshot over the one with the revision, in one message or in parts.
func (x *Snapshots[S]) replace(ctx context.Context, log subject.Log, one snapshot, raw []byte, was place) (place, error) {
	parts, err := x.split(ctx, log, &one, raw, &was)
	if err == nil && (len(one.Parts) > 0 || one.Held > 0) {
		raw, err = pack(one)
	}
	if err != nil {
		return was, err
	}
	rev, err := x.kv.Update(ctx, subject.FoldKey(log), raw, was.rev)
	if err != nil {
		return was, fmt.Errorf("store a snapshot: %w", err)
	}
	was.rev = rev
	return was, x.putParts(ctx, parts)
}

// Erase removes the snapshot of a deleted log permanently. It leaves a marker, so that a process that does not know of the
// deletion cannot store one later. It does nothing for a log that was too short for a snapshot.
func (x *Snapshots[S]) Erase(ctx context.Context, log subject.Log, end uint64) error {
	if x.kv == nil || end < x.every() {
		return nil
	}
	var at place
	var err error = jetstream.ErrKeyRevisionMismatch
	for try := 0; errors.Is(err, jetstream.ErrKeyRevisionMismatch); try++ {
		if _, at, err = x.get(ctx, log); err != nil && at.rev == 0 {
			return err
		}
		at.rev, err = x.mark(ctx, log, at.rev, try)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for i := 0; err == nil && i < at.held; i++ {
		err = x.kv.Delete(ctx, subject.FoldPart(log, i))
	}
	if err != nil {
		return fmt.Errorf("erase the snapshot of %s: %w", log, err)
	}
	return nil
}

// mark replaces the snapshot with the revision by the marker of a deletion. After some tries without a snapshot to replace, an
// earlier call has left a marker.
func (x *Snapshots[S]) mark(ctx context.Context, log subject.Log, rev uint64, try int) (uint64, error) {
	key := subject.FoldKey(log)
	if rev == 0 && try < eraseTries {
		var err error
		if rev, err = x.kv.Update(ctx, key, nil, 0); err != nil {
			return 0, errors.Join(err, pause(ctx, erasePause))
		}
	}
	return rev, x.kv.Delete(ctx, key, jetstream.LastRevision(rev))
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
