package index

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Recheck removes what a crash of the bus has brought back. A server that was killed has messages again that newer ones of their
// subjects had replaced, unless these are still there: an entry that was purged, or whose marker has expired, is back in an
// older state. Such are open questions that are over, and all entries of deleted logs.
func (w *writer) Recheck(ctx context.Context) error {
	logs, err := w.index.asking(ctx, subject.OpenQuestionsOf(w.kind))
	if err != nil {
		return err
	}
	if err := w.each(ctx, logs, w.mend); err != nil {
		return err
	}
	for _, p := range w.conn.Partitions().All() {
		deleted := func(_ subject.Log, last event.Type) bool { return last.Tombstone() }
		_, err := w.scan(ctx, p, 0, deleted, func(logs []subject.Log, _ uint64) (bool, error) { return true, w.each(ctx, logs, w.mend) })
		if err != nil {
			return err
		}
	}
	return nil
}

// asking returns the logs of the questions that the filter matches.
func (x *Index) asking(ctx context.Context, filter string) ([]subject.Log, error) {
	seen := map[subject.Log]bool{}
	var out []subject.Log
	for before := uint64(0); ; {
		p, err := x.exact.Read(ctx, filter, before, maxOpen)
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entries {
			before = e.Sequence
			log, _, _, err := subject.ParseQuestion(e.Subject)
			if err == nil && !seen[log] {
				seen[log], out = true, append(out, log)
			}
		}
		if !p.More || len(p.Entries) == 0 {
			return out, nil
		}
	}
}

// scan visits the logs of the shard that pass and whose last events lie after a sequence, some at a time in the order of these events,
// until visit wants no more. It reports whether it has come to the end.
func (w *writer) scan(
	ctx context.Context, p subject.Partition, after uint64, passes func(subject.Log, event.Type) bool, visit func(logs []subject.Log, reached uint64) (more bool, err error),
) (end bool, err error) {
	feed, err := w.conn.Headers(ctx, p.EventStream(), p.KindFilter(w.kind), 0, true)
	if err != nil {
		return false, fault.New(fault.BusUnavailable).Wrap(err)
	}
	defer feed.Stop()
	logs := make([]subject.Log, 0, chunk)
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-feed.Over():
			return false, fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("%w: %s", errFeed, p.EventStream()))
		case m := <-feed.Updates():
			if m == nil {
				_, err := visit(logs, after)
				return true, err
			}
			if m.Sequence <= after {
				continue
			}
			after = m.Sequence
			if log, err := w.conn.Partitions().ParseEvent(m.Subject); err == nil && passes(log, event.Type(m.Header.Get(event.HeaderType))) {
				logs = append(logs, log)
			}
		}
		if len(logs) < chunk {
			continue
		}
		if more, err := visit(logs, after); err != nil || !more {
			return false, err
		}
		logs = logs[:0]
	}
}

// each visits logs, some at a time, and passes over those that cannot be read.
func (w *writer) each(ctx context.Context, logs []subject.Log, visit func(context.Context, subject.Log) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, log := range logs {
		g.Go(func() error {
			if err := visit(gctx, log); err != nil {
				return w.pass(log, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// mend rebuilds the entries of a log.
func (w *writer) mend(ctx context.Context, log subject.Log) error {
	_, err := w.repair(ctx, log)
	return err
}
