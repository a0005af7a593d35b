package newest

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	// dear is the number of messages whose count costs the server as much as a request for one message, 20 µs.
	dear = 250
	// walkers is the number of parts of a stretch that are read at the same time, each message by a request of its own.
	walkers = 8
)

// found is what one read of a stretch returned.
type found struct {
	messages []Entry // oldest first
	whole    bool    // these are all
	has      int     // number of messages of the stretch, or more
}

// part is a part of a stretch.
type part struct {
	messages  []Entry // oldest first
	from, end uint64
	at        uint64 // where the unread rest begins
}

// walk returns the messages of a filter from the start to the end, if they are not more than the limit. It asks for each message alone: for
// each request for several ones the server visits all subjects of the filter, to say how many messages follow.
func (r Reader) walk(ctx context.Context, filter string, start, end uint64, limit int) (out found, err error) {
	span := end - start
	parts := make([]part, min(walkers, span))
	var room atomic.Int64
	room.Store(int64(limit))
	g, gctx := errgroup.WithContext(ctx)
	for i := range parts {
		p, n := &parts[i], uint64(len(parts))
		p.from, p.end = start+span*uint64(i)/n, start+span*uint64(i+1)/n
		g.Go(func() error { return r.through(gctx, filter, p, &room) })
	}
	err = g.Wait()
	read := uint64(0)
	for _, p := range parts {
		out.messages = append(out.messages, p.messages...)
		read += p.at - p.from
	}
	out.whole, out.has = read == span, len(out.messages)
	if !out.whole {
		out.has = int(float64(out.has+1) * float64(span) / float64(max(read, 1))) // as if they lay evenly
	}
	return out, err
}

// through reads a part until it has no more room.
func (r Reader) through(ctx context.Context, filter string, p *part, room *atomic.Int64) error {
	for p.at = p.from; p.at < p.end; {
		if room.Load() <= 0 {
			return nil
		}
		e, err := r.only(ctx, get{Seq: p.at, NextFor: filter})
		if errors.Is(err, ErrNone) || err == nil && e.Sequence >= p.end {
			p.at = p.end
			return nil
		}
		if err != nil {
			return err
		}
		p.messages = append(p.messages, e)
		p.at = e.Sequence + 1
		room.Add(-1)
	}
	return nil
}
