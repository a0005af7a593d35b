package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Heads returns the newest entry of every log of the kind that the tenant has, most recently used first. It leaves
// out deleted logs. It asks every shard, so it is meant for people and not for hot paths. For a log that is written
// meanwhile it may return the entry before the last.
func (s *Store) Heads(ctx context.Context, tenant id.Tenant, kind id.Kind) ([]*Entry, error) {
	var out []*Entry
	for _, p := range s.partitions.All() {
		logs, err := s.logs(ctx, p, tenant, kind)
		if err != nil {
			return nil, err
		}
		for chunk := range slices.Chunk(logs, checkChunk) {
			heads, err := s.headsOf(ctx, p, chunk)
			if err != nil {
				return nil, err
			}
			out = append(out, heads...)
		}
	}
	slices.SortFunc(out, func(a, b *Entry) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Subject, b.Subject))
	})
	return out, nil
}

// logs lists the logs of a shard by their subjects.
func (s *Store) logs(ctx context.Context, p subject.Partition, tenant id.Tenant, kind id.Kind) ([]string, error) {
	stream, err := s.conn.JS().Stream(ctx, p.EventStream())
	if err != nil {
		return nil, fmt.Errorf("list the logs of %s: %w", p.EventStream(), err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(p.LogFilter(tenant, kind)))
	if err != nil {
		return nil, fmt.Errorf("list the logs of %s: %w", p.EventStream(), err)
	}
	out := make([]string, 0, len(info.State.Subjects))
	for subj := range info.State.Subjects {
		out = append(out, subj)
	}
	slices.Sort(out)
	return out, nil
}

func (s *Store) headsOf(ctx context.Context, p subject.Partition, subjects []string) ([]*Entry, error) {
	var out []*Entry
	var broken error
	err := s.lastOf(ctx, p.EventStream(), subjects, func(m *nats.Msg) {
		log, err := s.partitions.ParseEvent(m.Header.Get("Nats-Subject"))
		if err != nil {
			broken = err
			return
		}
		e, err := directEntry(log, m)
		if err != nil {
			broken = err
			return
		}
		if !e.Type.Tombstone() {
			out = append(out, e)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the heads of %s: %w", p.EventStream(), err)
	}
	return out, broken
}

// Ends returns the oldest remaining entry of the log and the newest, both nil if the log is empty. It counts every
// event whose append succeeded before the call. It costs two small requests to the leader of the stream, and returns
// fault.BusUnavailable wrapped if the leader does not answer for Options.Retry.
func (s *Store) Ends(ctx context.Context, log subject.Log) (first, last *Entry, err error) {
	err = s.retry(ctx, func() (err error) {
		if last, err = s.leaderLast(ctx, log); err != nil {
			last = nil
			return nothing(err)
		}
		if first, err = s.leaderNext(ctx, log, 1); err != nil {
			first, last = nil, nil // expired completely, meanwhile
		}
		return nothing(err)
	})
	return first, last, err
}

// nothing turns errNone into nil.
func nothing(err error) error {
	if errors.Is(err, errNone) {
		return nil
	}
	return err
}

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
// former calls next after its own request.
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

// Attend is Last for a log that the caller is about to watch. If no viewer has the log, the request for its end opens its tail, so
// that Watch needs none within Options.Linger.
func (s *Store) Attend(ctx context.Context, log subject.Log) (Cursor, error) {
	s.mu.Lock()
	if _, known := s.tails[tailKey(log)]; known || s.closed {
		s.mu.Unlock()
		return s.Last(ctx, log)
	}
	t := s.begin(log)
	t.idle = time.Now()
	s.mu.Unlock()
	s.pool(log).Submit(t.start)
	select {
	case end := <-t.opened:
		if !end.exact {
			return s.Last(ctx, log)
		}
		if end.last == nil || end.last.Type.Tombstone() {
			s.dropUnwatched(t)
		}
		return positionOf(log, end.last)
	case <-s.ctx.Done():
		return Cursor{}, ErrClosed
	case <-ctx.Done():
		return Cursor{}, ended(ctx, context.Cause(ctx))
	}
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
