package eventlog

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"
)

// checkChunk is the number of logs that one request compares. The server allows 1,024; the answers carry whole
// events, so fewer keep a request within pageBytes.
const checkChunk = pageCount

// due is a tail to compare with its stream, and its last position before the request.
type due struct {
	t    *tail
	last Cursor
}

// check compares due tails with their streams and drops logs that have had no viewer for a while.
func (s *Store) check() {
	tick := time.NewTicker(min(max(s.opt.Check/4, 20*time.Millisecond), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
		}
		s.sweep(time.Now())
	}
}

func (s *Store) sweep(now time.Time) {
	if n, err := s.advisory.Dropped(); err == nil && n != s.unheard {
		s.unheard = n
		s.checkWhere(checkSlow, func(*tail) bool { return true })
	}
	up := s.conn.Up()
	byStream := make(map[string][]due)
	var unwatched []*nats.Subscription
	s.mu.Lock()
	for _, t := range s.tails {
		t.mu.Lock()
		switch {
		case len(t.viewers) == 0 && t.ready && now.Sub(t.idle) > s.opt.Linger:
			s.forget(t)
			unwatched = append(unwatched, t.sub)
		case up && t.ready && !t.healing && t.due(now): // a heal reads up to the end that is known
			byStream[s.partitions.Stream(t.log)] = append(byStream[s.partitions.Stream(t.log)], due{t, t.splice.Last})
			t.reschedule(now)
		}
		t.mu.Unlock()
	}
	s.mu.Unlock()
	for _, sub := range unwatched {
		_ = sub.Unsubscribe()
	}
	for stream, all := range byStream {
		for len(all) > 0 {
			chunk := all[:min(len(all), checkChunk)]
			all = all[len(chunk):]
			s.pool(chunk[0].t.log).Submit(func() { s.compare(stream, chunk) })
		}
	}
}

// due reports whether it is time to compare the tail with its stream: at the set time, or since announcements were lost after
// it was compared last. The client library reports only the first loss in a row, its count has them all. mu is held.
func (t *tail) due(now time.Time) bool {
	if lost, err := t.sub.Dropped(); err == nil && lost != t.lost {
		t.lost, t.trigger = lost, checkSlow
		return true
	}
	return !now.Before(t.checkAt)
}

// reschedule sets the time of the next check. mu is held.
func (t *tail) reschedule(now time.Time) {
	t.s.met.checks.WithLabelValues(t.trigger).Inc()
	switch t.trigger {
	case checkSettle, checkPeriod:
		t.trigger, t.checkAt = checkPeriod, now.Add(t.s.period())
	default:
		t.trigger, t.checkAt = checkSettle, now.Add(settle)
	}
}

// period returns the time from one comparison to the next.
func (s *Store) period() time.Duration { return jitter(s.opt.Check) + s.opt.Check/4 }

// checkSoon makes the tail due in the given time, unless it is due before.
func (t *tail) checkSoon(trigger string, in time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := time.Now().Add(in); t.checkAt.IsZero() || at.Before(t.checkAt) {
		t.trigger, t.checkAt = trigger, at
	}
}

// compare asks for the last message of each log and passes it to the tail. Any replica may answer, so an old answer
// proves nothing.
func (s *Store) compare(stream string, tails []due) {
	byKey := make(map[string]due, len(tails))
	subjects := make([]string, 0, len(tails))
	for _, d := range tails {
		byKey[s.partitions.Event(d.t.log)] = d
		subjects = append(subjects, s.partitions.Event(d.t.log))
	}
	err := s.lastOf(s.ctx, stream, subjects, func(m *nats.Msg) {
		d, ok := byKey[m.Header.Get(nats.JSSubject)]
		if !ok {
			return
		}
		delete(byKey, s.partitions.Event(d.t.log))
		d.t.compared(d.last, m)
	})
	if err != nil {
		s.log.Debug().Err(err).Str("stream", stream).Msg("tail check will be retried")
		for _, d := range tails {
			d.t.checkSoon(checkSettle, settle)
		}
		return
	}
	for _, d := range byKey { // not in the stream
		if d.last.Seq > 0 {
			s.pool(d.t.log).Submit(d.t.rewound)
		}
	}
}

// compared receives the last message of the tail's log from some replica. before is the tail's position before the
// request.
func (t *tail) compared(before Cursor, m *nats.Msg) {
	e, err := directEntry(t.log, m)
	if err != nil {
		t.broken(err)
		return
	}
	last := t.last()
	switch {
	case e.Sequence < before.Seq:
		t.s.pool(t.log).Submit(t.rewound)
	case e.Sequence == last.Seq+1:
		t.s.met.heals.WithLabelValues(healCheck).Inc()
		t.emit(healCheck, e)
	case e.Sequence > last.Seq:
		t.emit(healCheck, e)
	}
}

// lastOf visits the last message of each subject that has one.
func (s *Store) lastOf(ctx context.Context, stream string, subjects []string, visit func(*nats.Msg)) error {
	q := getRequest{MultiLast: subjects, Batch: checkChunk, MaxBytes: pageBytes}
	for more := true; more; {
		body, err := json.Marshal(q)
		if err != nil {
			return fmt.Errorf("encode tail check of %s: %w", stream, err)
		}
		var failed error
		more = false
		err = s.replies.Many(ctx, &nats.Msg{Subject: directGet(stream), Data: body}, checkChunk+2, quiet, func(m *nats.Msg) bool {
			status := m.Header.Get("Status")
			if len(m.Data) > 0 || status == "" {
				visit(m)
				return true
			}
			if failed = statusError(status, m.Header.Get("Description")); failed == nil && number(m, "Nats-Num-Pending") > 0 {
				more = true
				q.Seq, q.UpToSeq = number(m, "Nats-Last-Sequence")+1, number(m, "Nats-UpTo-Sequence")
			}
			return false
		})
		if err != nil {
			return err
		}
		if failed != nil {
			return failed
		}
	}
	return nil
}

// connection handles a loss or return of the connection.
func (s *Store) connection(up bool) {
	if !up {
		s.replies.Disconnected()
		return
	}
	s.announceAgain()
	s.checkWhere(checkReconnect, func(*tail) bool { return true })
}

// slowPause is the time from a loss of announcements to the check of their log. The next announcement of the log shows
// the loss as well, so that the check is for the last one only; and while more is lost, all that is lost within the
// pause costs one check.
const slowPause = 250 * time.Millisecond

// slow handles the first of the messages in a row that the client library dropped from a subscription. The sweep finds further
// ones.
func (s *Store) slow(sub *nats.Subscription) {
	if sub == s.advisory {
		s.wakeUp()
		return
	}
	t := s.tail(keyOf(sub.Subject))
	if t == nil {
		return
	}
	t.checkSoon(checkSlow, slowPause)
	if s.slowSoon.CompareAndSwap(false, true) {
		time.AfterFunc(slowPause, func() {
			s.slowSoon.Store(false)
			s.wakeUp()
		})
	}
}

// checkStream handles a new leader of a stream.
func (s *Store) checkStream(stream string) {
	s.checkWhere(checkLeader, func(t *tail) bool { return s.partitions.Stream(t.log) == stream })
}

func (s *Store) checkWhere(trigger string, match func(*tail) bool) {
	s.mu.Lock()
	for _, t := range s.tails {
		if match(t) {
			t.checkSoon(trigger, 0)
		}
	}
	s.mu.Unlock()
	s.wakeUp()
}

// wakeUp has the checker look for tails that are due.
func (s *Store) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
