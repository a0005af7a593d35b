package stream

import (
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// MaxBatch is how many events one frame holds at most.
const MaxBatch = 200

// maxBatchBytes bounds the stored form of the events of one frame: no more than the
// largest event by itself, a quarter of the default queue.
const maxBatchBytes = 256 << 10

// Replay says how a client is shown what it missed: everything up to Head, the end of the
// log when the client came.
type Replay struct {
	Head  uint64
	Merge bool // consecutive parts of a text as one
	// Batch returns one text for many events; nil = each has its own.
	Batch func([]event.Event) []byte
	// Replayed returns the text that ends the replay: count events up to at were shown.
	Replayed func(count int, at eventlog.Cursor) []byte
}

// replay is a Replay that continues.
type replay struct {
	Replay
	after uint64 // where the client stood
}

// show queues what the client missed and returns how many of the entries have been
// taken; newer entries are left. The stream is locked.
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

// close says that the replay is over, if it is.
func (r *replay) close(s *Stream) {
	if s.reached() < r.Head {
		return
	}
	s.settle()
	s.replay = nil
	at := s.at
	s.say(func() []byte { return r.Replayed(int(at.Seq-r.after), at) }) //nolint:gosec // a log is shorter than 2^63
}

// batches queues entries as few frames, as far as the queue has room, and reports whether
// these are all.
func (r *replay) batches(s *Stream, entries []*eventlog.Entry) bool {
	for len(entries) > 0 && len(s.rest.ms) == 0 {
		n := batchSize(entries)
		events := make([]event.Event, n)
		for i, e := range entries[:n] {
			events[i] = e.Event
		}
		s.say(func() []byte { return r.Batch(events) })
		s.at = entries[n-1].Cursor()
		entries = entries[n:]
	}
	return len(entries) == 0
}

// batchSize returns how many of the entries fit one frame, at least one.
func batchSize(entries []*eventlog.Entry) int {
	bytes := 0
	for i, e := range entries {
		if bytes += len(e.Raw); i == MaxBatch || i > 0 && bytes > maxBatchBytes {
			return i
		}
	}
	return len(entries)
}

// say queues a text after everything that the stream has taken, now or when the queue
// has room. The caller has locked.
func (s *Stream) say(build func() []byte) {
	s.showLocked(func() []*transport.Message { return []*transport.Message{transport.Text(build())} })
}

// Beat sends a heartbeat, unless messages of the stream wait: the first of them is as good
// a sign, and the heartbeat would overtake it.
func (s *Stream) Beat(build func(seq uint64) []byte) {
	s.mu.Lock()
	defer s.unlock()
	if s.flush() {
		s.say(func() []byte { return build(s.at.Seq) })
	}
}

// Skip continues with the event first, because those before it are gone, and holds the
// stream behind the text that says so until Release.
func (s *Stream) Skip(first uint64, build func() []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	s.at = eventlog.Cursor{Seq: first - 1}
	if s.replay != nil {
		s.replay.after = s.at.Seq
	}
	s.held = true
	s.say(build)
}

// Release lets a stream that is held continue, after a text unless build is nil.
func (s *Stream) Release(build func() []byte) {
	s.mu.Lock()
	s.held = false
	if build != nil {
		s.say(build)
	}
	if s.replay != nil {
		s.replay.close(s)
	}
	v := s.v
	s.unlock()
	if v != nil {
		v.Resume()
	}
}
