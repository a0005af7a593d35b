package gateway

import (
	"errors"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/waggle-dev/waggle/gateway/wire"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// feed shows a log on a socket. It is the socket's sink: when the socket's queue is
// full the log goes on without it, and brings it up to date when it has drained.
type feed struct {
	c     *conn
	build func() any      // builds the frames of entry; made once
	entry *eventlog.Entry // of build; callbacks come one at a time

	mu   sync.Mutex // guards what follows: a sink may be called before Watch has returned
	v    *eventlog.Viewer
	at   uint64       // the last entry taken
	rest []wire.Frame // frames of it that the queue had no room for
}

// batches holds what several entries become, so that they leave in few writes.
var batches = sync.Pool{New: func() any { return new([]wire.Frame) }}

func newFeed(c *conn, after eventlog.Cursor) *feed {
	f := &feed{c: c, at: after.Seq}
	f.build = f.encode
	v := c.s.dep.Log.Watch(c.session, after, f)
	f.mu.Lock()
	f.v = v
	f.mu.Unlock()
	v.Resume() // in case that it was full before anybody could have said so
	return f
}

func (f *feed) position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// low is called when the socket's queue has room again.
func (f *feed) low() {
	f.mu.Lock()
	f.flush()
	v := f.v
	f.mu.Unlock()
	if v != nil {
		v.Resume()
	}
}

// flush queues what was left of an entry and reports whether nothing is left.
func (f *feed) flush() bool {
	if len(f.rest) > 0 {
		f.rest = f.rest[f.c.sock.Send(f.rest...):]
	}
	return len(f.rest) == 0
}

func (f *feed) close() {
	f.mu.Lock()
	v := f.v
	f.mu.Unlock()
	if v != nil {
		v.Close()
	}
}

// Deliver implements eventlog.Sink. An entry is encoded once per dialect, whoever
// watches it, and what comes together leaves together.
func (f *feed) Deliver(batch []*eventlog.Entry) int {
	f.c.sessionExists()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.flush() {
		return 0
	}
	var sent int
	if len(batch) == 1 {
		sent = f.send(f.frames(batch[0]))
	} else {
		all, _ := batches.Get().(*[]wire.Frame)
		for _, e := range batch {
			*all = append(*all, f.frames(e)...)
		}
		sent = f.send(*all)
		clear(*all)
		*all = (*all)[:0]
		batches.Put(all)
	}
	taken := f.took(batch, sent)
	if taken < len(batch) {
		f.c.s.met.lags.Inc()
	}
	return taken
}

func (f *feed) send(frames []wire.Frame) int {
	if len(frames) == 0 {
		return 0
	}
	return f.c.sock.Send(frames...)
}

// took returns of how many entries the first frames have been sent, and keeps what
// is left of the last of them.
func (f *feed) took(batch []*eventlog.Entry, sent int) int {
	for i, e := range batch {
		frames := f.frames(e)
		if sent == 0 && len(frames) > 0 {
			return i
		}
		f.at = e.Sequence
		if sent < len(frames) {
			f.rest = slices.Clone(frames[sent:])
			return i + 1
		}
		sent -= len(frames)
	}
	return len(batch)
}

func (f *feed) frames(e *eventlog.Entry) []wire.Frame {
	f.entry = e
	frames, _ := e.Memo(f.c.key, f.build).([]wire.Frame)
	return frames
}

// encode builds the frames of an entry. A codec that panics must not take every
// gateway down with the log that it cannot read.
func (f *feed) encode() (v any) {
	e, c := f.entry, f.c
	defer func() {
		if r := recover(); r != nil {
			c.s.dep.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).
				Str("log", e.Subject).Uint64("seq", e.Sequence).Msg("an event cannot be encoded")
			v = []wire.Frame{wire.Text(c.codec.Fail(fault.New(fault.Internal), c.s.dep.Clock()))}
		}
	}()
	payloads := c.codec.Encode(e.Event)
	out := make([]wire.Frame, 0, len(payloads))
	for _, p := range payloads {
		out = append(out, wire.Text(p))
	}
	return out
}

// Truncated implements eventlog.Sink.
func (f *feed) Truncated(first uint64) {
	f.c.sessionExists()
	f.c.sock.Force(wire.Text(f.c.codec.Truncated(first, f.c.s.dep.Clock())))
}

// CaughtUp implements eventlog.Sink.
func (f *feed) CaughtUp(uint64) {}

// Failed implements eventlog.Sink.
func (f *feed) Failed(err error) {
	switch {
	case errors.Is(err, eventlog.ErrClosed):
		f.c.end(fault.New(fault.Draining))
	case errors.Is(err, eventlog.ErrBeyondEnd):
		f.c.end(fault.New(fault.CursorInvalid))
	default:
		f.c.end(f.c.s.asFault(err))
	}
}
