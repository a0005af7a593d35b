package eventlog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// lagMaxWait is the time for which a replica may lag before the Store asks the leader. A follower lags 3 to 7 ms
	// (measured under load); on a busy machine ten times that.
	lagMaxWait  = 250 * time.Millisecond
	lagPause    = 3 * time.Millisecond
	lagPauseMax = 50 * time.Millisecond
	// retryPause is the first pause after an error of the bus, doubled up to retryPauseMax, so that a retry follows
	// the end of an election within half a second.
	retryPause    = 25 * time.Millisecond
	retryPauseMax = 500 * time.Millisecond
)

// Read visits the entries after the position, oldest first, up to the end that the log has when Read is called. An
// error of visit ends Read and is returned unchanged. Read returns a *TruncatedError if entries that should follow
// after have expired, ErrBeyondEnd if the log ends before after, ErrDeleted if the log was deleted, and
// fault.BusUnavailable wrapped if it could not read the bus for Options.Retry.
func (s *Store) Read(ctx context.Context, log subject.Log, after Cursor, visit func(*Entry) error) error {
	end, err := s.Last(ctx, log)
	if err != nil {
		return err
	}
	return s.readTo(ctx, log, after, end, visit)
}

// ReadOwn is Read, but takes from memory what this process has just appended, even if it has expired since.
func (s *Store) ReadOwn(ctx context.Context, log subject.Log, after Cursor, visit func(*Entry) error) error {
	end, err := s.Last(ctx, log)
	if err != nil {
		return err
	}
	for _, e := range s.recent.between(log, after.Seq, end) {
		if err := visit(e); err != nil {
			return err
		}
		after = e.Cursor()
	}
	return s.readTo(ctx, log, after, end, visit)
}

// readTo reads from one position to another, which is the end of the log.
func (s *Store) readTo(ctx context.Context, log subject.Log, after, end Cursor, visit func(*Entry) error) error {
	if end.Seq < after.Seq {
		return fmt.Errorf("%w: %s ends at %d, not %d", ErrBeyondEnd, log, end.Seq, after.Seq)
	}
	for at := after; at.Seq < end.Seq; {
		entries, err := s.follow(ctx, log, at, readCount)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return fmt.Errorf("%w: %s ended at %d and ends at %d", ErrBeyondEnd, log, end.Seq, at.Seq)
		}
		if entries[0].Type.Tombstone() {
			return deleted(log)
		}
		if entries[0].Sequence != at.Seq+1 {
			return &TruncatedError{First: entries[0].Sequence}
		}
		entries = upTo(entries, end)
		for _, e := range entries {
			if err := visit(e); err != nil {
				return err
			}
		}
		at = entries[len(entries)-1].Cursor()
	}
	return nil
}

// upTo returns the entries that the log's leader knew when it named its end. After a power failure a replica may hold
// more than the leader until the next append to the stream; readers must not rely on entries that the leader never
// had.
func upTo(entries []*Entry, end Cursor) []*Entry {
	n := len(entries)
	for n > 0 && entries[n-1].Sequence > end.Seq {
		n--
	}
	return entries[:n]
}

// Last returns the position of the log's last entry, the zero Cursor if the log is empty. It counts every event whose
// append succeeded before the call. It returns ErrDeleted if the log was deleted, and fault.BusUnavailable wrapped if
// the leader does not answer for Options.Retry.
func (s *Store) Last(ctx context.Context, log subject.Log) (Cursor, error) {
	e, err := s.head(ctx, log)
	if err != nil {
		return Cursor{}, err
	}
	return positionOf(log, e)
}

// positionOf returns the position of the log's last entry, which is nil if the log is empty.
func positionOf(log subject.Log, last *Entry) (Cursor, error) {
	switch {
	case last == nil:
		return Cursor{}, nil
	case last.Type.Tombstone():
		return Cursor{}, deleted(log)
	}
	return last.Cursor(), nil
}

// Follows reports whether the shard has an event of a log of the kind after the sequence of its stream. It asks the leader, and returns
// fault.BusUnavailable wrapped if that does not answer for Options.Retry.
func (s *Store) Follows(ctx context.Context, p subject.Partition, k id.Kind, after uint64) (found bool, err error) {
	err = s.retry(ctx, func() error {
		_, err := s.askLeader(ctx, p.EventStream(), getRequest{Seq: after + 1, NextFor: p.KindFilter(k)})
		found = err == nil
		return nothing(err)
	})
	return found, err
}

// end asks the leader for the log's end until it answers.
func (s *Store) end(ctx context.Context, log subject.Log) (Cursor, error) {
	e, err := s.head(ctx, log)
	if err != nil || e == nil {
		return Cursor{}, err
	}
	return e.Cursor(), nil
}

// follow returns up to that many entries that follow the position, and waits for a replica that lags. An empty result means that
// the leader has no further entries. If the first entry does not follow at, the leader has confirmed that the entries
// between do not exist any more.
func (s *Store) follow(ctx context.Context, log subject.Log, at Cursor, most int) ([]*Entry, error) {
	var out []*Entry
	err := s.retry(ctx, func() (err error) {
		out, err = s.followOnce(ctx, log, at, most)
		return err
	})
	return out, err
}

func (s *Store) followOnce(ctx context.Context, log subject.Log, at Cursor, most int) ([]*Entry, error) {
	scan, err := s.locate(ctx, log, at)
	if err != nil {
		return nil, err
	}
	maxWait := time.Now().Add(lagMaxWait)
	for pause := lagPause; ; pause = min(2*pause, lagPauseMax) {
		p, err := s.readPage(ctx, log, scan, most)
		if err != nil {
			return nil, err
		}
		if len(p.entries) > 0 && p.entries[0].Sequence == at.Seq+1 {
			return p.entries, nil
		}
		if len(p.entries) > 0 || time.Now().After(maxWait) {
			return s.confirm(ctx, log, at, scan.Stream+1)
		}
		if p.scanned > scan.Stream {
			scan.Stream = p.scanned
			if p.more { // the replica is behind only where it has nothing further
				pause, maxWait = lagPause, time.Now().Add(lagMaxWait)
				continue
			}
		}
		if err := wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// confirm asks the leader for the entry after the position, beginning at the stream sequence from, after a replica
// returned no entry or not the next one. If the leader's answer is not the next entry either, the position's stream
// sequence may be wrong, and confirm scans the log from its head.
func (s *Store) confirm(ctx context.Context, log subject.Log, at Cursor, from uint64) ([]*Entry, error) {
	for {
		e, err := s.leaderNext(ctx, log, from)
		switch {
		case errors.Is(err, errNone) && at.Stream > 0:
			// Fall through to the scan.
		case errors.Is(err, errNone):
			return nil, nil
		case err != nil:
			return nil, err
		case e.Sequence == at.Seq+1:
			return []*Entry{e}, nil
		case e.Sequence <= at.Seq:
			from = e.Stream + 1
			continue
		case at.Stream == 0:
			return []*Entry{e}, nil
		}
		return s.followOnce(ctx, log, Cursor{Seq: at.Seq}, readCount)
	}
}

// retry calls do until it succeeds, fails permanently, or the bus has failed for Options.Retry. Time without a
// connection counts as well.
func (s *Store) retry(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(s.opt.Retry)
	for pause := retryPause; ; pause = min(2*pause, retryPauseMax) {
		err := do()
		if err == nil || permanent(err) {
			return err
		}
		if ctx.Err() != nil {
			return ended(ctx, err)
		}
		if time.Now().After(deadline) {
			return unavailable(err)
		}
		if err := wait(ctx, jitter(pause)); err != nil {
			return err
		}
	}
}

// jitter returns a random duration between half of d and d.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // spreads retries, protects nothing
}

// wait returns after d, or with ctx's error when ctx ends first.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
