package eventlog

import (
	"context"
	"iter"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxQueued bounds the entries that wait for the consumer of a Tail.
const maxQueued = 256

// Tail yields the log's entries after the position, history and then live, until ctx ends, and yields ctx's error
// last. A *TruncatedError reports expired entries, after which the sequence continues; any other error is the last. A
// consumer that is slower than the log gets consecutive deltas of one message merged (Entry.From < Entry.Sequence).
func (s *Store) Tail(ctx context.Context, log subject.Log, after Cursor) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		q := &queue{wake: make(chan struct{}, 1)}
		v := s.Watch(log, after, q)
		defer v.Close()
		for {
			items, failed := q.drain()
			for _, it := range items {
				if !yield(it.entry, it.err) {
					return
				}
			}
			if failed != nil {
				yield(nil, failed)
				return
			}
			if len(items) > 0 {
				v.Resume()
				continue
			}
			select {
			case <-q.wake:
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
		}
	}
}

// queue is the Sink of a Tail.
type queue struct {
	wake chan struct{}

	mu     sync.Mutex
	items  []item
	failed error
}

type item struct {
	entry *Entry
	err   error
}

// Deliver implements Sink.
func (q *queue) Deliver(batch []*Entry) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(batch), max(maxQueued-len(q.items), 0))
	for _, e := range batch[:n] {
		q.items = append(q.items, item{entry: e})
	}
	q.signal()
	return n
}

// Truncated implements Sink.
func (q *queue) Truncated(first uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, item{err: &TruncatedError{First: first}})
	q.signal()
}

// Failed implements Sink.
func (q *queue) Failed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = err
	q.signal()
}

// CaughtUp implements Sink.
func (q *queue) CaughtUp(uint64) {}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) drain() ([]item, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items, q.failed
}
