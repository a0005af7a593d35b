package gateway

import (
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxBatchBytes bounds the stored form of the events of one frame: no more than the
// largest event by itself, a quarter of the default queue.
const maxBatchBytes = 256 << 10

// replay is what a feed does until the client has what it missed: everything up to
// head, the end of the log when the client came.
type replay struct {
	codec dialect.Sessions
	link  func() dialect.Link
	after uint64 // where the client stood
	head  uint64
	batch bool // many events in one frame
	merge bool // consecutive pieces of a text as one

	matched *bool // the client's hash of the state is right; nil = it sent none
}

// show queues what the client missed and returns how many of the entries have been
// taken; whatever is newer is left. The feed is locked.
func (r *replay) show(f *feed, entries []*eventlog.Entry) (taken int) {
	missed := entries
	for i, e := range entries {
		if e.From > r.head {
			missed = entries[:i]
			break
		}
	}
	shown := missed
	if r.merge {
		shown = eventlog.Merge(missed)
	}
	switch {
	case !r.batch:
		f.show(shown)
	case r.batches(f, f.together(shown)) && len(missed) > 0:
		f.at = missed[len(missed)-1].Cursor()
	}
	r.close(f)
	for taken < len(missed) && missed[taken].Sequence <= f.reached() {
		taken++
	}
	return taken
}

// close says that the replay is over, if it is.
func (r *replay) close(f *feed) {
	if f.reached() < r.head {
		return
	}
	f.settle()
	f.replay = nil
	f.say(func() []byte {
		return r.codec.Replayed(r.link(), f.log.Entity.String(), int(f.at.Seq-r.after), f.at.Seq, f.at.String(), r.matched) //nolint:gosec // a log is shorter than 2^63
	})
}

// batches queues entries as few frames, as far as there is room, and reports whether
// these are all.
func (r *replay) batches(f *feed, entries []*eventlog.Entry) bool {
	for len(entries) > 0 && len(f.rest) == 0 {
		n := batchSize(entries)
		events := make([]event.Event, n)
		for i, e := range entries[:n] {
			events[i] = e.Event
		}
		f.at = entries[n-1].Cursor()
		f.say(func() []byte { return r.codec.Batch(r.link(), f.log.Entity.String(), events) })
		entries = entries[n:]
	}
	return len(entries) == 0
}

// batchSize returns how many of the entries fit one frame, at least one.
func batchSize(entries []*eventlog.Entry) int {
	bytes := 0
	for i, e := range entries {
		if bytes += len(e.Raw); i == dialect.MaxBatch || i > 0 && bytes > maxBatchBytes {
			return i
		}
	}
	return len(entries)
}

// say queues a frame behind everything that the feed has taken, now or when there
// is room. The caller has locked.
func (f *feed) say(build func() []byte) {
	if f.over {
		return
	}
	f.settle()
	var frame []byte
	if !f.c.safely(f.log, func() { frame = build() }) {
		frame = f.codec.Fail(fault.New(fault.Internal), f.c.s.dep.Clock())
	}
	f.rest = append(f.rest, ws.Text(frame))
	f.flush()
}

// beat sends a heartbeat, unless frames of the feed wait: whatever comes then is as
// good a sign, and the heartbeat would overtake it.
func (f *feed) beat(build func(seq uint64) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.flush() {
		f.say(func() []byte { return build(f.at.Seq) })
	}
}

// skip goes on with the event first, those before it being gone, and holds the feed
// after a frame that says so until release.
func (f *feed) skip(first uint64, build func() []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
	f.at = eventlog.Cursor{Seq: first - 1}
	if f.replay != nil {
		f.replay.after = f.at.Seq
	}
	f.held = true
	f.say(build)
}

// release lets a feed that is held go on, after a frame unless build is nil.
func (f *feed) release(build func() []byte) {
	f.mu.Lock()
	f.held = false
	if build != nil {
		f.say(build)
	}
	if f.replay != nil {
		f.replay.close(f)
	}
	v := f.v
	f.mu.Unlock()
	if v != nil {
		v.Resume()
	}
}
