package gateway

import (
	"errors"
	"sync"

	"github.com/waggle-dev/waggle/gateway/wire"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// feed shows a log on a socket. It is the socket's sink: when the socket's queue is
// full the log goes on without it, and brings it up to date when it has drained.
type feed struct {
	c *conn

	mu   sync.Mutex // guards what follows: a sink may be called before Watch has returned
	v    *eventlog.Viewer
	at   uint64       // the last entry taken
	rest []wire.Frame // frames of it that the queue had no room for
}

func newFeed(c *conn, after eventlog.Cursor) *feed {
	f := &feed{c: c, at: after.Seq}
	v := c.s.dep.Log.Watch(c.session, after, f)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.v = v
	return f
}

func (f *feed) viewer() *eventlog.Viewer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.v
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
	f.rest = f.rest[f.c.sock.Send(f.rest...):]
	return len(f.rest) == 0
}

func (f *feed) close() {
	if v := f.viewer(); v != nil {
		v.Close()
	}
}

// Deliver implements eventlog.Sink. An entry is encoded once per dialect, whoever
// watches it.
func (f *feed) Deliver(batch []*eventlog.Entry) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, e := range batch {
		if !f.flush() {
			return i
		}
		frames := f.frames(e)
		n := f.c.sock.Send(frames...)
		if n == 0 && len(frames) > 0 {
			return i
		}
		f.at, f.rest = e.Sequence, frames[n:]
	}
	return len(batch)
}

func (f *feed) frames(e *eventlog.Entry) []wire.Frame {
	codec := f.c.codec
	v := e.Memo(codec.Name(), func() any {
		payloads := codec.Encode(e.Event)
		out := make([]wire.Frame, 0, len(payloads))
		for _, p := range payloads {
			out = append(out, wire.Text(p))
		}
		return out
	})
	frames, _ := v.([]wire.Frame)
	return frames
}

// Truncated implements eventlog.Sink.
func (f *feed) Truncated(first uint64) {
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
