package eventlog

import (
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxSaid is how many announcements are remembered: more than a connection can
// have in its buffer when it breaks (32 KiB in nats.go).
const maxSaid = 128

// announced remembers the last announcements. When the connection breaks those in
// its buffer are lost, and nobody but their writer knows: they are repeated then.
type announced struct {
	mu   sync.Mutex
	last [maxSaid]announcement
	next int
}

type announcement struct {
	log subject.Log
	e   *Entry
}

// announce tells those who watch the log. Announcements are hints: what is lost is
// found by the viewers themselves, only later.
func (s *Store) announce(log subject.Log, e *Entry) {
	s.said.mu.Lock()
	s.said.last[s.said.next] = announcement{log, e}
	s.said.next = (s.said.next + 1) % maxSaid
	s.said.mu.Unlock()
	s.publishLive(log, e)
}

// forget drops what is remembered of a log that was deleted.
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

// announceAgain repeats the last announcements of each log, oldest first. Viewers that
// have seen them drop them by their sequence. The leader is asked first whether the
// log was deleted meanwhile: then its events must not turn up again.
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
		s.log.Debug().Err(err).Stringer("log", log).Uint64("seq", e.Sequence).Msg("event not announced")
	}
}
