package gateway

import (
	"slices"

	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// fetch is an entry of a feed whose data is stored as an object. The log goes on without
// the feed until the object is there, as it does for a socket that is full.
type fetch struct {
	seq     uint64
	entry   *eventlog.Entry // with the data; nil until it is there
	release func()          // gives the socket's place for objects back; nil = it was, or is to be
}

// whole returns the entries that can be shown: those before the first whose data is not
// there yet. The feed is locked.
func (f *feed) whole(batch []*eventlog.Entry) []*eventlog.Entry {
	out := batch
	for i, e := range batch {
		data, err := event.Refers(e.Event)
		switch {
		case err != nil || data == nil:
		case f.got == nil || f.got.entry == nil || f.got.seq != e.Sequence:
			return out[:i]
		default:
			out = slices.Clone(batch)
			out[i] = f.got.entry
		}
	}
	return out
}

// fetch begins to load what the entry refers to. The feed is locked.
func (f *feed) fetch(e *eventlog.Entry) {
	f.settleFetch()
	if f.over || f.got != nil {
		return
	}
	f.got = &fetch{seq: e.Sequence}
	f.fetches.Go(func() { f.load(e, f.got) })
}

// load loads what the entry refers to and lets the feed go on.
func (f *feed) load(e *eventlog.Entry, got *fetch) {
	release, err := f.c.hold(f.ctx)
	if err != nil {
		return // the socket ends
	}
	whole, err := f.c.fetched(f.ctx, f.log, e.Event)
	if err != nil {
		release()
		return
	}
	f.mu.Lock()
	got.entry, got.release = &eventlog.Entry{Event: whole, Raw: e.Raw}, release
	v := f.v
	f.mu.Unlock()
	if v != nil {
		v.Resume()
	}
}

// settleFetch forgets an entry that was shown. The feed is locked.
func (f *feed) settleFetch() {
	if f.got == nil || f.got.entry == nil || f.got.seq > f.at.Seq {
		return
	}
	f.passOn()()
	f.got = nil
}

// passOn returns what gives back the socket's place for objects, which the caller has to
// call, if the feed has it. The feed is locked.
func (f *feed) passOn() (release func()) {
	if f.got == nil || f.got.release == nil {
		return func() {}
	}
	release, f.got.release = f.got.release, nil
	return release
}
