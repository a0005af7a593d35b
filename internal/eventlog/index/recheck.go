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
		err := w.scan(ctx, p, func(m event.Type) bool { return m.Tombstone() }, w.mend)
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

// scan visits the logs of the shard whose last events have the types.
func (w *writer) scan(ctx context.Context, p subject.Partition, of func(event.Type) bool, visit func(context.Context, subject.Log) error) error {
	feed, err := w.conn.Headers(ctx, p.EventStream(), p.KindFilter(w.kind), 0, true)
	if err != nil {
		return fault.New(fault.BusUnavailable).Wrap(err)
	}
	defer feed.Stop()
	logs := make([]subject.Log, 0, chunk)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-feed.Over():
			return fmt.Errorf("%w: %s", errFeed, p.EventStream())
		case m := <-feed.Updates():
			if m == nil {
				return w.each(ctx, logs, visit)
			}
			if log, err := w.conn.Partitions().ParseEvent(m.Subject); err == nil && of(event.Type(m.Header.Get(event.HeaderType))) {
				logs = append(logs, log)
			}
		}
		if len(logs) == chunk {
			if err := w.each(ctx, logs, visit); err != nil {
				return err
			}
			logs = logs[:0]
		}
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

// mend makes the entries of a log what they are if they are made anew.
func (w *writer) mend(ctx context.Context, log subject.Log) error {
	_, err := w.repair(ctx, log)
	return err
}
