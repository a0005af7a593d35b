package stream

import (
	"context"
	"slices"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// fetch is an entry of a stream whose data is stored as an object. The log continues without
// the stream until the object is there, as it does for a socket that is full.
type fetch struct {
	seq     uint64
	entry   *eventlog.Entry // with the data; nil until it is there
	release func()          // gives the connection's slot back; nil = it was, or is to be
}

// passOn returns what gives back the connection's slot, which the caller has to
// call, if the stream has it. The stream is locked.
func (s *Stream) passOn() (release func()) {
	if s.got == nil || s.got.release == nil {
		return func() {}
	}
	release, s.got.release = s.got.release, nil
	return release
}

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

// load loads what the entry refers to and lets the stream continue.
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
