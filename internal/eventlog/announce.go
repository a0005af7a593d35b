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

// announceAgain repeats the last announcements, oldest first. Viewers that have
// seen them drop them by their sequence.
func (s *Store) announceAgain() {
	s.said.mu.Lock()
	var last []announcement
	for i := range maxSaid {
		if a := s.said.last[(s.said.next+i)%maxSaid]; a.e != nil {
			last = append(last, a)
		}
	}
	s.said.mu.Unlock()
	for _, a := range last {
		s.publishLive(a.log, a.e)
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
