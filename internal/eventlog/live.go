package eventlog

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxSaid is the number of remembered announcements: more than the buffer of a connection holds when it breaks (32
// KiB in nats.go).
const maxSaid = 128

// announced remembers the last announcements. A broken connection loses those in its buffer, and only their writer
// knows them, so it repeats them.
type announced struct {
	mu   sync.Mutex
	last [maxSaid]announcement
	next int
}

type announcement struct {
	log subject.Log
	e   *Entry
}

// announce publishes the entry to the viewers of the log. Announcements are hints: viewers find lost ones by
// themselves, only later.
func (s *Store) announce(log subject.Log, e *Entry) {
	s.said.mu.Lock()
	s.said.last[s.said.next] = announcement{log, e}
	s.said.next = (s.said.next + 1) % maxSaid
	s.said.mu.Unlock()
	s.recent.add(log, e)
	s.publishLive(log, e)
}

// forget discards the remembered announcements of a deleted log.
func (a *announced) forget(log subject.Log) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.last {
		if a.last[i].log == log {
			a.last[i] = announcement{}
		}
	}
}

// byLog returns the remembered announcements by log, oldest first.
func (a *announced) byLog() map[subject.Log][]*Entry {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make(map[subject.Log][]*Entry)
	for i := range maxSaid {
		if an := a.last[(a.next+i)%maxSaid]; an.e != nil {
			out[an.log] = append(out[an.log], an.e)
		}
	}
	return out
}

// announceAgain repeats the last announcements of each log, oldest first. Viewers drop known ones by their sequence.
// It first asks the leader whether the log was deleted meanwhile, because events of a deleted log must not reappear.
func (s *Store) announceAgain() {
	for log, entries := range s.said.byLog() {
		s.pool(log).Submit(func() {
			if _, err := s.Last(s.ctx, log); err != nil {
				s.log.Debug().Err(err).Stringer("log", log).Msg("repeated announcements skipped")
				return
			}
			for _, e := range entries {
				s.publishLive(log, e)
			}
		})
	}
}

func (s *Store) publishLive(log subject.Log, e *Entry) {
	err := s.nc.PublishMsg(&nats.Msg{Subject: log.Live(string(e.Type)), Data: e.Raw, Header: nats.Header{
		event.HeaderSeq:       {strconv.FormatUint(e.Sequence, 10)},
		event.HeaderType:      {string(e.Type)},
		event.HeaderStreamSeq: {strconv.FormatUint(e.Stream, 10)},
	}})
	if err != nil {
		s.log.Debug().Err(err).Stringer("log", log).Uint64("seq", e.Sequence).Msg("failed to announce event")
	}
}

const (
	// leaderAdvisories matches the advisory about a stream's new leader; the stream's name is the last token.
	leaderAdvisories = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*"
	// maxRun bounds the announcements of one log that are handled together.
	maxRun = 64
)

// tailKey returns the common prefix of the log's live subjects.
func tailKey(log subject.Log) string { return strings.TrimSuffix(log.LiveAll(), ">") }

// keyOf returns the tailKey of a live subject or filter: its first four tokens and the dot after them. It returns ""
// for anything else.
func keyOf(s string) string {
	dots := 0
	for i := range len(s) {
		if s[i] != '.' {
			continue
		}
		if dots++; dots == 4 {
			return s[:i+1]
		}
	}
	return ""
}

// dispatch passes every announcement to the tail of its log. One goroutine does it for all logs.
func (s *Store) dispatch() {
	run := make([]*Entry, 0, maxRun)
	for {
		select {
		case <-s.ctx.Done():
			return
		case m := <-s.inbound:
			for m != nil {
				m = s.route(m, run)
			}
		}
	}
}

// route handles a message and the waiting messages of the same subscription behind it. It returns the first one of
// another subscription.
func (s *Store) route(m *nats.Msg, run []*Entry) (other *nats.Msg) {
	if m.Sub == s.advisory {
		s.checkStream(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
		return nil
	}
	t := s.tail(keyOf(m.Subject))
	for sub := m.Sub; ; {
		if t != nil {
			run = s.appendLive(run, t, m)
		}
		select {
		case m = <-s.inbound:
		default:
			m = nil
		}
		if m == nil || m.Sub != sub || len(run) == cap(run) {
			break
		}
	}
	if len(run) > 0 {
		t.emit(healGap, run...)
		clear(run)
	}
	return m
}

// appendLive decodes an announcement, unless the tail has no use for it.
func (s *Store) appendLive(run []*Entry, t *tail, m *nats.Msg) []*Entry {
	seq, stream := number(m, event.HeaderSeq), number(m, event.HeaderStreamSeq)
	if stream == 0 || !t.takes(Cursor{Seq: seq, Stream: stream}) {
		return run
	}
	e, err := entry.Decode(t.log.Name(), seq, stream, m.Data)
	if err != nil {
		s.log.Warn().Err(err).Msg("announcement ignored: not decodable")
		return run
	}
	return append(run, e)
}

func (s *Store) tail(key string) *tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tails[key]
}

// subscribe subscribes to the announcements of the tail's log.
func (t *tail) subscribe() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sub != nil || t.gone {
		return nil
	}
	sub, err := t.s.nc.ChanSubscribe(t.log.LiveAll(), t.s.inbound)
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", t.log, err)
	}
	t.sub = sub
	return nil
}

// drop removes a tail and unsubscribes.
func (s *Store) drop(t *tail) { s.dropIf(t, func() bool { return true }) }

// dropUnwatched is drop for a tail without viewers. Another one stays.
func (s *Store) dropUnwatched(t *tail) { s.dropIf(t, func() bool { return len(t.viewers) == 0 }) }

// dropIf removes a tail and unsubscribes, if the function says so, which is called under the locks.
func (s *Store) dropIf(t *tail, due func() bool) {
	var sub *nats.Subscription
	s.mu.Lock()
	t.mu.Lock()
	if due() {
		s.forget(t)
		sub = t.sub
	}
	t.mu.Unlock()
	s.mu.Unlock()
	if sub != nil {
		_ = sub.Unsubscribe()
	}
}

// forget removes the tail from the Store. s.mu and t.mu are held.
func (s *Store) forget(t *tail) {
	if t.gone {
		return
	}
	t.gone = true
	if s.tails[t.key] == t {
		delete(s.tails, t.key)
	}
	before := t.ring.Bytes()
	t.ring.Clear()
	t.account(before)
	t.groups = nil
	s.met.watched.Dec() // last: who sees it finds the rest done
}

func (s *Store) flush() error {
	ctx, cancel := context.WithTimeout(s.ctx, leaderTimeout)
	defer cancel()
	return s.conn.FlushOnce(ctx)
}
