// Package events binds a connection to things that exist without it: the log of a session,
// a task or a team, or the announcements of a tenant. Their events are shown as they are
// stored, and the client asks for nothing on the connection.
package events

import (
	"context"
	"time"

	"github.com/waggle-dev/waggle/gateway/events/canonical"
	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

var codec canonical.Codec

// Binding is the thing that a connection is bound to. Its methods may be called
// concurrently.
type Binding interface {
	// Room: the queue of the connection has room again.
	Room()
	// Close ends the binding. When it returns, nothing more is sent.
	Close()
}

var (
	_ Binding        = (*Log)(nil)
	_ stream.Binding = (*Log)(nil)
)

// Log shows one log.
type Log struct {
	to     transport.Transport
	stream *stream.Stream
}

// NewLog shows the events of a log after a position, until Close, and lists the stream in w. It ends the connection when
// the log is deleted or cannot be read any more.
func NewLog(ctx context.Context, src *stream.Source, log subject.Log, after eventlog.Cursor, to transport.Transport, w *stream.Watches) *Log {
	l := &Log{to: to}
	l.stream = stream.New(src, stream.Options{Life: ctx, Log: log, Codec: codec, To: to, Slot: stream.NewSlot(), Binding: l, Watches: w})
	l.stream.Watch(after, nil)
	return l
}

// Room implements Binding.
func (l *Log) Room() { l.stream.Resume() }

// Close implements Binding.
func (l *Log) Close() { l.stream.Close() }

// Seen implements stream.Binding.
func (l *Log) Seen(*stream.Stream) {}

// Expired implements stream.Binding.
func (l *Log) Expired(_ *stream.Stream, first uint64) {
	l.to.Force(transport.New(codec.Truncated(first), canonical.EventProblem, transport.Position{}))
}

// Failed implements stream.Binding.
func (l *Log) Failed(_ *stream.Stream, err error) { End(l.to, fault.From(stream.Gone(err), "")) }

// Deleted implements stream.Binding: the client has the tombstone, and no event follows.
func (l *Log) Deleted(*stream.Stream) { End(l.to, fault.New(fault.SessionDeleted)) }

// Notice implements stream.Binding: events that are in no log are not shown.
func (l *Log) Notice(*stream.Stream, event.NoticeData) {}

// End ends a connection. A fault that does not mean "reconnect and resume" is also said in
// an event.
func End(to transport.Transport, f *fault.Fault) {
	if f.Code != fault.Draining {
		to.Force(transport.New(codec.Fail(f, time.Time{}), canonical.EventProblem, transport.Position{}))
	}
	to.End(f)
}
