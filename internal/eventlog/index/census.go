package index

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// census counts the entries of a filter, or returns a count that is younger than a second. A first entry shows at once.
func (x *Index) census(ctx context.Context, filter string) (census, error) {
	now := time.Now()
	if known, ok := x.counts.get(filter, now); ok {
		return known, nil
	}
	out := census{at: now}
	if err := x.ask(ctx, get{Seq: 1, NextFor: filter, Batch: 1}, 2, func(m *nats.Msg) bool {
		if len(m.Data) == 0 && m.Header.Get("Status") != "" {
			return false
		}
		out.first, out.total = number(m, nats.JSSequence), int(number(m, "Nats-Num-Pending"))+1 //nolint:gosec // far fewer than 2^63
		return true
	}); err != nil {
		return out, err
	}
	if out.total > 0 {
		x.counts.put(filter, out)
	}
	return out, nil
}

// endPatience bounds the wait for the leader of the index.
const endPatience = time.Second

// end returns the sequence that the next entry of any filter gets, or a smaller one while other processes write. It asks the
// leader.
func (x *Index) end(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	s, err := x.conn.JS().Stream(ctx, subject.StreamIndex)
	if err != nil {
		return 0, fault.New(fault.BusUnavailable).Wrap(fmt.Errorf("look at the index: %w", err))
	}
	return s.CachedInfo().State.LastSeq + 1, nil
}
