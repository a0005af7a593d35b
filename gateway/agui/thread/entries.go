package thread

import (
	"context"
	"errors"
	"sync"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Bounds of the entries that wait for a feed. Beyond them the log goes on without the feed, which then catches up with merged
// deltas.
const (
	maxQueued      = 256
	maxQueuedBytes = 1 << 20
)

// entries are the entries of a log behind a position, and the direct messages about it, for one reader.
type entries struct {
	viewer *eventlog.Viewer
	wake   chan struct{}

	mu     sync.Mutex
	told   func() // as wake, for who does not wait; nil = who reads waits
	list   []*eventlog.Entry
	bytes  int // of the list
	direct []event.Event
	failed error
}

// watch begins to read the log.
func watch(store *eventlog.Store, log subject.Log, after eventlog.Cursor) *entries {
	q := &entries{wake: make(chan struct{}, 1)}
	q.viewer = store.Watch(log, after, q)
	return q
}

// next waits for the next entry or direct message. The error is that of the log, or ctx's cause.
func (q *entries) next(ctx context.Context) (*eventlog.Entry, *event.Event, error) {
	for {
		e, d, empty, err := q.take()
		if empty {
			q.viewer.Resume()
		}
		if e != nil || d != nil || err != nil {
			return e, d, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// poll is next for a reader that does not wait: told is called whenever more has come. It must not block.
func (q *entries) poll(told func()) (*eventlog.Entry, *event.Event, error) {
	q.mu.Lock()
	q.told = told
	q.mu.Unlock()
	e, d, empty, err := q.take()
	if empty {
		q.viewer.Resume()
	}
	return e, d, err
}

// take returns what waits, and whether no more entries do.
func (q *entries) take() (e *eventlog.Entry, d *event.Event, empty bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.direct) > 0:
		d, q.direct = &q.direct[0], q.direct[1:]
	case len(q.list) > 0:
		e, q.list = q.list[0], q.list[1:]
		q.bytes -= len(e.Data)
	default:
		err = q.failed
	}
	return e, d, len(q.list) == 0 && e != nil, err
}

// tell adds a direct message.
func (q *entries) tell(e event.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.direct = append(q.direct, e)
	q.signal()
}

// Deliver implements eventlog.Sink.
func (q *entries) Deliver(batch []*eventlog.Entry) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n, e := range batch {
		if len(q.list) >= maxQueued || q.bytes > 0 && q.bytes+len(e.Data) > maxQueuedBytes {
			q.signal()
			return n
		}
		q.list = append(q.list, e)
		q.bytes += len(e.Data)
	}
	q.signal()
	return len(batch)
}

// Truncated implements eventlog.Sink: the fold goes on with what the log has.
func (q *entries) Truncated(uint64) {}

// CaughtUp implements eventlog.Sink.
func (q *entries) CaughtUp(uint64) {}

// Failed implements eventlog.Sink.
func (q *entries) Failed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = err
	q.signal()
}

func (q *entries) signal() {
	if q.told != nil {
		q.told()
		return
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// gone turns the reasons why a log cannot be read into faults.
func gone(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrDeleted):
		return fault.New(fault.SessionDeleted)
	case errors.Is(err, eventlog.ErrBeyondEnd):
		return fault.New(fault.CursorInvalid)
	case errors.Is(err, eventlog.ErrClosed):
		return fault.New(fault.Draining)
	}
	return err
}
