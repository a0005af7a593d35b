package stream

import (
	"github.com/waggle-dev/waggle/internal/eventlog"
)

// Deliver implements eventlog.Sink. An entry is encoded once per codec, for all its
// viewers, and entries that come together leave together.
func (s *Stream) Deliver(batch []*eventlog.Entry) int {
	s.Binding.Seen(s)
	taken, deleted := s.deliver(batch)
	if deleted {
		s.Binding.Deleted(s)
	}
	return taken
}

func (s *Stream) deliver(batch []*eventlog.Entry) (taken int, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goesOn(batch)
	whole := s.whole(batch)
	if s.Questions.showing(batch) {
		defer func() { s.Questions.shown(s.Log.Entity, batch[:taken]) }()
	}
	if !s.held && s.flush() && s.replay != nil {
		taken = s.replay.show(s, whole)
	}
	if !s.held && len(s.rest.ms) == 0 && s.replay == nil {
		taken += s.show(whole[taken:])
	}
	for _, e := range batch[:taken] {
		s.stand.follow(e.Event)
	}
	deleted = s.settled()
	if taken == len(whole) && taken < len(batch) {
		s.fetch(batch[taken])
	}
	switch {
	case taken == len(batch):
		s.regain()
	case s.held:
		s.falls(Expired)
	case taken == len(whole):
		s.falls(Loading)
	default:
		s.falls(QueueFull)
	}
	return taken, deleted
}

// show takes entries in order and queues what they become. It takes no more once something that the queue has no room for is
// left, and keeps that: at most as much as the spare room and one entry. It returns how many it has taken. The caller has
// locked.
func (s *Stream) show(batch []*eventlog.Entry) (taken int) {
	q, _ := queues.Get().(*queue)
	size := 0
	for _, e := range batch {
		n := len(q.ms)
		s.take(e, q)
		for _, m := range q.ms[n:] {
			size += len(m.Data)
		}
		if taken++; size <= s.Spare && taken < len(batch) {
			continue
		}
		if size = 0; !s.pass(q) {
			break
		}
	}
	queues.Put(q)
	return taken
}

// take takes an entry and adds to the queue what is due because of it. The caller has locked.
func (s *Stream) take(e *eventlog.Entry, q *queue) {
	if s.pieces != nil {
		s.gather(e, q)
	} else {
		q.add(s.at.Seq, s.project(e)...)
		s.at = e.Cursor()
	}
	s.gone = s.gone || e.Type.Tombstone()
	if s.Shown == nil {
		return
	}
	var held Held
	if s.got != nil && s.got.seq == e.Sequence {
		held = s.passOn
	}
	s.Shown(e, held)
}

// pass sends messages after those that wait, and keeps those for which the transport has no room. It reports whether none
// are left.
func (s *Stream) pass(q *queue) bool {
	sent := 0
	if len(q.ms) > 0 && len(s.rest.ms) == 0 {
		sent = s.To.Send(q.ms...)
	}
	s.rest.ms, s.rest.behind = append(s.rest.ms, q.ms[sent:]...), append(s.rest.behind, q.behind[sent:]...)
	q.clear()
	return len(s.rest.ms) == 0
}

// flush queues what was left over and reports whether nothing is left. The caller
// has locked.
func (s *Stream) flush() bool {
	if len(s.rest.ms) == 0 {
		return true
	}
	if !s.rest.send(s.To) {
		return false
	}
	s.rest = queue{} // it may have been long, and the stream may be idle for long
	return true
}

// settled does what is due once nothing waits for room, and reports whether the binding is to be told that the log was
// deleted. The caller has locked.
func (s *Stream) settled() (deleted bool) {
	if len(s.rest.ms) > 0 || s.over {
		return false
	}
	s.settleFetch()
	if s.Clear != nil {
		s.Clear()
	}
	deleted, s.gone = s.gone, false
	return deleted
}
