package stream

import (
	"context"
	"slices"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// whole returns the entries that can be shown: those before the first whose data is not
// there yet. The stream is locked.
func (s *Stream) whole(batch []*eventlog.Entry) []*eventlog.Entry {
	out := batch
	for i, e := range batch {
		data, err := event.Refers(e.Event)
		switch {
		case err != nil || data == nil:
		case s.got == nil || s.got.entry == nil || s.got.seq != e.Sequence:
			return out[:i]
		default:
			out = slices.Clone(batch)
			out[i] = s.got.entry
		}
	}
	return out
}

// fetch begins to load what the entry refers to. The stream is locked.
func (s *Stream) fetch(e *eventlog.Entry) {
	s.settleFetch()
	if s.over || s.got != nil {
		return
	}
	s.got = &fetch{seq: e.Sequence}
	got, ctx := s.got, s.life()
	s.fetches.Go(func() { s.load(ctx, e, got) })
}

// life returns the life of what is loaded: most streams load nothing. The stream is locked and not over.
func (s *Stream) life() context.Context {
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancel(s.Life)
	}
	return s.ctx
}

// load loads what the entry refers to and lets the stream go on.
func (s *Stream) load(ctx context.Context, e *eventlog.Entry, got *fetch) {
	release, err := s.Slot.Hold(ctx, s.To.Done())
	if err != nil {
		return // the socket ends
	}
	whole, err := s.src.Loader.Event(ctx, s.Log, e.Event)
	if err != nil {
		release()
		return
	}
	s.mu.Lock()
	got.entry, got.release = &eventlog.Entry{Event: whole, Raw: e.Raw}, release
	v := s.v
	s.mu.Unlock()
	if v != nil {
		v.Resume()
	}
}

// settleFetch forgets an entry that was shown. The stream is locked.
func (s *Stream) settleFetch() {
	if s.got == nil || s.got.entry == nil || s.got.seq > s.at.Seq {
		return
	}
	s.passOn()()
	s.got = nil
}
