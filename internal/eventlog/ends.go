package eventlog

import (
	"context"
	"errors"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// ends are the requests for the ends of logs. One request for a log is on its way at a time, and those who ask meanwhile
// share the next: thousands of clients that come back to one log at once cost two requests. So every answer is that to a
// request that was sent after it was asked for.
type ends struct {
	mu  sync.Mutex
	now map[subject.Log]*end // the next request of each log that has one on its way
}

// end is a request, and its answer once done is closed.
type end struct {
	wanted int // callers that wait for it
	done   chan struct{}
	last   *Entry
	err    error
}

// begin returns nil if no request for the log is on its way, and otherwise the next, to wait for. The caller of the
// former calls next behind its own request.
func (e *ends) begin(log subject.Log) (wait *end) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if wait = e.now[log]; wait != nil {
		wait.wanted++
		return wait
	}
	if e.now == nil {
		e.now = make(map[subject.Log]*end)
	}
	e.now[log] = &end{done: make(chan struct{})}
	return nil
}

// next ends a request and returns the next, nil if it is not wanted.
func (e *ends) next(log subject.Log) *end {
	e.mu.Lock()
	defer e.mu.Unlock()
	due := e.now[log]
	if due.wanted == 0 {
		delete(e.now, log)
		return nil
	}
	e.now[log] = &end{done: make(chan struct{})}
	return due
}

// head asks the leader for the log's last entry until it answers; nil if the log is empty.
func (s *Store) head(ctx context.Context, log subject.Log) (*Entry, error) {
	if shared := s.ends.begin(log); shared != nil {
		select {
		case <-shared.done:
			return shared.last, shared.err
		case <-ctx.Done():
			return nil, ended(ctx, context.Cause(ctx))
		}
	}
	last, err := s.askHead(ctx, log)
	if due := s.ends.next(log); due != nil {
		go s.share(log, due, err)
	}
	return last, err
}

// share makes the requests for which others wait, one after the other. before is the error of the request that was on its
// way: a leader that has not answered it for Options.Retry is not asked again on behalf of those who have waited as well.
func (s *Store) share(log subject.Log, due *end, before error) {
	for ; due != nil; due = s.ends.next(log) {
		if f, ok := errors.AsType[*fault.Fault](before); ok && f.Code == fault.BusUnavailable {
			due.err, before = before, nil
		} else {
			due.last, due.err = s.askHead(s.ctx, log)
		}
		close(due.done)
	}
}

// askHead is head by a request of its own.
func (s *Store) askHead(ctx context.Context, log subject.Log) (last *Entry, err error) {
	err = s.retry(ctx, func() (err error) {
		if last, err = s.leaderLast(ctx, log); err != nil {
			last = nil
		}
		return nothing(err)
	})
	return last, err
}
