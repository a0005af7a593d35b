package ws

import (
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// sweeper looks after all sockets at every tick, so that none needs a timer.
func (h *Hub) sweeper() {
	t := time.NewTicker(h.opts.tick())
	defer t.Stop()
	var all []*Socket
	for {
		select {
		case <-h.stop:
			return
		case now := <-t.C:
			all = h.snapshot(all[:0])
			for i, s := range all {
				s.sweep(now)
				all[i] = nil
			}
		}
	}
}

// sweep pings, finds what takes too long, and ticks the handler.
func (s *Socket) sweep(now time.Time) {
	s.mu.Lock()
	h := s.handler
	code, cut := s.verdict(s.hub.now())
	first := code != "" && !s.ended
	if first {
		s.ended = true
	}
	s.unlockAndKick()
	if cut {
		s.cut(plainly)
		return
	}
	if first {
		s.end(h, fault.New(code))
	}
	if h != nil {
		h.Tick(now)
	}
}

// end closes the socket for a reason of the hub's.
func (s *Socket) end(h Handler, f *fault.Fault) {
	if h != nil {
		h.Ended(f)
	}
	s.Finish(fault.Lookup(f.Code).Close, f.Message)
	if f.Code == fault.PeerStuck {
		s.cut(hard) // it would not read the close frame either
	}
}

// verdict says whether the socket has to end; the caller has locked.
func (s *Socket) verdict(now int64) (code fault.Code, cut bool) {
	o := &s.hub.opts
	late := func(since int64, limit time.Duration) bool {
		return since != 0 && now-since > int64(limit)
	}
	switch {
	case s.over:
	case s.closing != nil:
		return "", s.hurry(now)
	case s.behind && late(s.moved.Load(), o.WriteStall):
		return fault.PeerStuck, false
	case s.reading && !s.paused && late(s.began.Load(), o.MessageTimeout):
		return fault.MessageSlow, false
	case s.silent(now):
		return fault.PeerSilent, false
	}
	return "", false
}

// hurry reports whether the close handshake has taken too long. A peer that is
// slow to take what waits gets the close frame instead of the rest first.
func (s *Socket) hurry(now int64) bool {
	if now <= s.closeBy {
		return false
	}
	if s.closeOut || s.hurried {
		return true
	}
	s.hurried = true
	s.drop()
	s.closeBy = now + int64(s.hub.opts.CloseTimeout)
	return false
}

// silent sends the ping that is due, and reports whether the last one has gone
// without any sign of life for too long. It does not judge without a reader, nor
// while the peer is behind: that is a matter of progress.
func (s *Socket) silent(now int64) bool {
	o := &s.hub.opts
	if s.waiting != 0 && max(s.heard.Load(), s.moved.Load()) > s.waiting {
		s.waiting = 0
	}
	if s.waiting != 0 {
		return s.reading && !s.paused && !s.behind && now-s.waiting > int64(o.PongTimeout)
	}
	if now >= s.pingAt && !s.behind {
		s.pongs = append(s.pongs, pingFrame...)
		s.waiting, s.pingAt = now, now+int64(o.PingInterval)
	}
	return false
}
