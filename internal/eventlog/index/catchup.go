package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/internal/bus"
	"github.com/waggle-dev/waggle/internal/eventlog/newest"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

const (
	// chunk is the number of logs whose summaries are brought up to date together, parallel of them at a time.
	chunk    = 64
	parallel = 8
	// far is the number of messages of a shard beyond which the last one of each log is read in place of all of them.
	far = 20_000
	// keepEvery is the number of logs after which a long catch-up stores how far it has come.
	keepEvery = 1024
)

// errFeed means that a feed has ended early: the catch-up begins again from what it stored.
var errFeed = errors.New("feed of headers ended")

// writer brings summaries up to date.
type writer struct {
	index  *Index
	conn   *bus.Conn
	kind   id.Kind
	fades  bool
	logger zerolog.Logger

	covered coverage
}

// shard is a feed of the headers of one shard, from where the index is complete.
type shard struct {
	part subject.Partition
	end  uint64 // of the shard at the beginning
	from uint64 // older messages are known
	feed *bus.Feed
	next *bus.Message // nil: all are read
}

// CatchUp brings the summaries of all logs up to date that have changed since the last one, oldest change first. It makes
// a missing index anew, and reads nothing of what this process has brought up to date before. Its memory does not depend on the
// number of logs.
func (w *writer) CatchUp(ctx context.Context) error {
	at, err := w.index.positions(ctx, w.kind)
	if err != nil {
		return err
	}
	before := at
	w.covered.begin(at)
	open, err := w.open(ctx, &at)
	defer func() {
		for _, s := range open {
			s.feed.Stop()
		}
	}()
	if err != nil {
		return err
	}
	if err := w.merge(ctx, open, &at); err != nil {
		return err
	}
	if at == before {
		return nil
	}
	if err := w.index.keep(ctx, w.kind, at); err != nil {
		return err
	}
	w.covered.move(at)
	return nil
}

// open opens feeds of the shards that have news.
func (w *writer) open(ctx context.Context, at *positions) ([]*shard, error) {
	var out []*shard
	for _, p := range w.conn.Partitions().All() {
		stream, err := w.conn.JS().Stream(ctx, p.EventStream())
		if err != nil {
			return out, fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("look at %s: %w", p.EventStream(), err))
		}
		end := stream.CachedInfo().State.LastSeq
		if at.Shards[p] > end {
			at.Shards[p] = 0 // restored from an older backup
		} else {
			at.Shards[p] = w.covered.reach(p)
		}
		from := at.Shards[p]
		if from >= end {
			continue
		}
		// A feed has the server unpack a block of the shard to count, whether any message in it is of the kind or not.
		news, err := w.index.log.Follows(ctx, p, w.kind, from)
		if err != nil {
			return out, err
		}
		if !news {
			at.Shards[p] = end
			continue
		}
		feed, err := w.conn.Headers(ctx, p.EventStream(), p.KindFilter(w.kind), from, from == 0 || end-from > far)
		if err != nil {
			return out, err
		}
		s := &shard{part: p, end: end, from: from, feed: feed}
		out = append(out, s)
		if err := s.advance(ctx); err != nil {
			return out, err
		}
	}
	return out, nil
}

// advance takes the next message that the index may not know.
func (s *shard) advance(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m := <-s.feed.Updates():
			if s.next = m; m == nil || m.Sequence > s.from {
				return nil
			}
			continue
		default:
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.feed.Over():
			return fmt.Errorf("%w: %s", errFeed, s.part.EventStream())
		case m := <-s.feed.Updates():
			if s.next = m; m == nil || m.Sequence > s.from {
				return nil
			}
		}
	}
}

// merge updates the logs of all feeds in the order of their messages.
func (w *writer) merge(ctx context.Context, open []*shard, at *positions) error {
	var logs []subject.Log
	done := 0
	reached := *at
	flush := func() error {
		if err := w.update(ctx, logs); err != nil {
			return err
		}
		*at, done, logs = reached, done+len(logs), logs[:0]
		if done < keepEvery {
			return nil
		}
		done = 0
		return w.index.keep(ctx, w.kind, *at)
	}
	for {
		oldest := oldestOf(open)
		if oldest == nil {
			break
		}
		log, err := w.conn.Partitions().ParseEvent(oldest.next.Subject)
		if err == nil && !slices.Contains(logs, log) {
			logs = append(logs, log)
		}
		reached.Shards[oldest.part] = oldest.next.Sequence
		if err := oldest.advance(ctx); err != nil {
			return err
		}
		if len(logs) == chunk {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	for _, s := range open {
		reached.Shards[s.part] = max(reached.Shards[s.part], s.end)
	}
	return flush()
}

func oldestOf(open []*shard) *shard {
	var out *shard
	for _, s := range open {
		if s.next != nil && (out == nil || s.next.Time.Before(out.next.Time)) {
			out = s
		}
	}
	return out
}

// update brings the summaries of some logs up to date, and writes them in the order of their last events. A log that
// cannot be read keeps its old summary.
func (w *writer) update(ctx context.Context, logs []subject.Log) error {
	changes := make([]change, len(logs))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, log := range logs {
		g.Go(func() error {
			c, err := w.index.prepare(gctx, log)
			if err != nil {
				return w.pass(log, err)
			}
			changes[i] = c
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	slices.SortStableFunc(changes, func(a, b change) int { return a.summary.UpdatedAt.Compare(b.summary.UpdatedAt) })
	if err := w.carryOut(ctx, changes); err != nil {
		return err
	}
	for _, c := range changes {
		w.covered.add(w.conn.Partitions().Of(c.log), c.read)
	}
	return nil
}

// carryOut makes the changes in their order.
func (w *writer) carryOut(ctx context.Context, changes []change) error {
	waits := make([]func() error, 0, len(changes))
	for _, c := range changes {
		switch {
		case c.drop:
			if err := w.remove(ctx, c.log); err != nil {
				return err
			}
		case c.write:
			if err := w.index.settle(ctx, c); err != nil {
				if err = w.again(ctx, c, err); err != nil {
					return err
				}
				continue
			}
			done, err := w.index.begin(c)
			if err != nil {
				return err
			}
			waits = append(waits, func() error {
				return w.again(ctx, c, written(ctx, c, done))
			})
		}
	}
	for _, wait := range waits {
		if err := wait(); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the entries of a log that is deleted or has expired, as the role of the process may.
func (w *writer) remove(ctx context.Context, log subject.Log) error {
	if w.fades {
		return w.index.fade(ctx, log)
	}
	return w.index.Drop(ctx, log)
}

// again makes a change once more that another process has overtaken.
func (w *writer) again(ctx context.Context, c change, err error) error {
	if errors.Is(err, errRaced) {
		err = w.index.Update(ctx, c.log)
	}
	if err != nil {
		return w.pass(c.log, err)
	}
	return nil
}

// pass passes over a log that cannot be read. It returns errors of the bus, after which the same work is done again.
func (w *writer) pass(log subject.Log, err error) error {
	f, ok := errors.AsType[*fault.Fault](err)
	if ok && f.Code == fault.BusUnavailable || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errRaced) {
		return err
	}
	w.logger.Warn().Err(err).Stringer("log", log).Msg("summary skipped: log unreadable")
	return nil
}

// positions returns how far the index is complete.
func (x *Index) positions(ctx context.Context, k id.Kind) (positions, error) {
	var out positions
	m, err := x.newest.Last(ctx, subject.IndexPosition(k))
	if errors.Is(err, newest.ErrNone) {
		return out, nil
	}
	if err == nil && json.Unmarshal(m.Data, &out) != nil {
		out = positions{}
	}
	return out, err
}

// keep stores how far the index is complete.
func (x *Index) keep(ctx context.Context, k id.Kind, p positions) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode the position of the index: %w", err)
	}
	if _, err := x.conn.JS().Publish(ctx, subject.IndexPosition(k), raw); err != nil {
		return fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("store the position of the index: %w", err))
	}
	return nil
}
