package eventlog

import (
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"

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
		s.pool(log).submit(func() {
			if _, err := s.Last(s.ctx, log); err != nil {
				s.log.Debug().Err(err).Stringer("log", log).Msg("skip repeated announcements")
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
		s.log.Debug().Err(err).Stringer("log", log).Uint64("seq", e.Sequence).Msg("fail to announce event")
	}
}
