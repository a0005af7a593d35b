package stream

import (
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
)

// show queues what the client missed and returns how many of the entries have been
// taken; whatever is newer is left. The stream is locked.
func (r *replay) show(s *Stream, entries []*eventlog.Entry) (taken int) {
	missed := entries
	for i, e := range entries {
		if e.From > r.Head {
			missed = entries[:i]
			break
		}
	}
	shown := missed
	if r.Merge {
		shown = eventlog.Merge(missed)
	}
	switch {
	case r.Batch == nil:
		s.show(shown)
	case r.batches(s, s.together(shown)) && len(missed) > 0:
		s.at = missed[len(missed)-1].Cursor()
	}
	r.close(s)
	for taken < len(missed) && missed[taken].Sequence <= s.reached() {
		taken++
	}
	return taken
}

// Say queues a text.
func (o *Opening) Say(build func() []byte) { o.s.say(build) }

// Replay has what the client missed shown as r says.
func (o *Opening) Replay(r Replay) {
	o.s.replay = &replay{Replay: r, after: o.s.at.Seq}
	o.s.replay.close(o.s)
}

// Deliver implements eventlog.Sink. An entry is encoded once per codec, for all its
// viewers, and entries that come together leave together.
func (s *Stream) Deliver(batch []*eventlog.Entry) int {
	s.Binding.Seen(s)
	taken := s.deliver(batch)
	if shown := batch[:taken]; len(shown) > 0 && shown[len(shown)-1].Type.Tombstone() {
		s.Binding.Deleted(s)
	}
	return taken
}

func (s *Stream) deliver(batch []*eventlog.Entry) (taken int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.goesOn(batch)
	whole := s.whole(batch)
	if shown := s.Questions.Showing(s.Log.Entity, batch); shown != nil {
		defer func() { shown(batch[:taken]) }()
	}
	if !s.held && s.flush() && s.replay != nil {
		taken = s.replay.show(s, whole)
	}
	if !s.held && len(s.rest) == 0 && s.replay == nil {
		taken += s.show(whole[taken:])
	}
	for _, e := range batch[:taken] {
		s.stand.follow(e.Event)
	}
	if taken == len(whole) && taken < len(batch) {
		s.fetch(batch[taken])
	}
	if taken < len(batch) {
		s.src.Lagged()
	}
	return taken
}

// show queues entries as they are and returns how many it has taken. The caller has
// locked.
func (s *Stream) show(batch []*eventlog.Entry) int {
	if len(batch) == 0 {
		return 0
	}
	if s.pieces != nil {
		return s.gather(batch)
	}
	if len(batch) == 1 {
		return s.showOne(batch)
	}
	all, _ := batches.Get().(*[]*transport.Message)
	defer func() {
		clear(*all)
		*all = (*all)[:0]
		batches.Put(all)
	}()
	for _, e := range batch {
		*all = append(*all, s.frames(e)...)
	}
	sent := s.send(*all)
	if sent < len(*all) {
		return s.took(batch, sent)
	}
	for _, e := range batch {
		s.take(e)
	}
	return len(batch)
}

// showOne is show for one entry, which is what comes live.
func (s *Stream) showOne(batch []*eventlog.Entry) int {
	frames := s.frames(batch[0])
	if sent := s.send(frames); sent < len(frames) {
		return s.took(batch, sent)
	}
	s.take(batch[0])
	return 1
}
