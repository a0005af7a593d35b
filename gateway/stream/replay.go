package stream

import (
	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxBatchBytes bounds the stored form of the events of one frame: no more than the
// largest event by itself, a quarter of the default queue.
const maxBatchBytes = 256 << 10

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
	for len(entries) > 0 && len(s.rest) == 0 {
		n := batchSize(entries)
		events := make([]event.Event, n)
		for i, e := range entries[:n] {
			events[i] = e.Event
		}
		s.at = entries[n-1].Cursor()
		s.say(func() []byte { return r.Batch(events) })
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

// say queues a text behind everything that the stream has taken, now or when the queue
// has room. The caller has locked.
func (s *Stream) say(build func() []byte) {
	if s.over {
		return
	}
	s.settle()
	var frame []byte
	if !s.src.safely(s.Log, func() { frame = build() }) {
		frame = s.Codec.Fail(fault.New(fault.Internal), s.src.Clock())
	}
	s.rest = append(s.rest, transport.Text(frame))
	s.flush()
}

// Beat sends a heartbeat, unless messages of the stream wait: the first of them is as good
// a sign, and the heartbeat would overtake it.
func (s *Stream) Beat(build func(seq uint64) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flush() {
		s.say(func() []byte { return build(s.at.Seq) })
	}
}

// Skip goes on with the event first, because those before it are gone, and holds the
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

// Release lets a stream that is held go on, behind a text unless build is nil.
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
	s.mu.Unlock()
	if v != nil {
		v.Resume()
	}
}
