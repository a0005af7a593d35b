package stream

import (
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Projector makes the messages of the entries of a log for one stream.
type Projector interface {
	// Project returns the messages of the next entry, none for one that is not shown. It is called once for each entry, in
	// order, with the stream locked. Streams may share the messages, and do not change the slice.
	Project(e *eventlog.Entry) []*transport.Message
}

// Codec makes messages of events. It is an immutable value: two codecs with the same name
// make the same messages of an event.
type Codec interface {
	Name() string
	// Encode returns the messages of the event, each one text, and none for an event that is
	// not shown.
	Encode(e event.Event) [][]byte
	// Fail returns the text that tells of a fault.
	Fail(f *fault.Fault, now time.Time) []byte
}

// frameKey keeps the keys of remembered messages apart from all others.
type frameKey string

// coded is a stream as the projector of its codec. All viewers of an entry share its messages, which depend on no other entry.
type coded Stream

// Project implements Projector.
func (c *coded) Project(e *eventlog.Entry) []*transport.Message {
	if late(e.Event, c.src.Clock) || c.Hides != nil && c.Hides(e.Event) {
		return nil
	}
	c.entry = e
	ms, _ := e.Memo(c.key, c.build).([]*transport.Message)
	if e.Sequence == c.begun.seq {
		return ms[min(c.begun.frames, len(ms)):]
	}
	return ms
}

// late reports whether the event is a message between clients that was to be shown
// by an earlier time.
func late(e event.Event, clock func() time.Time) bool {
	if e.Type != event.InboxMessaged {
		return false
	}
	m, err := event.As[event.InboxMessagedData](e)
	return err == nil && !m.ExpiresAt.IsZero() && clock().After(m.ExpiresAt)
}

// encode builds the messages of an entry.
func (c *coded) encode() any { return c.src.Encode(c.Log, c.Codec, c.entry.Event) }

// Encode returns the messages of an event of a log. One that the codec cannot encode becomes its text for the fault.
func (s *Source) Encode(log subject.Log, codec Codec, e event.Event) (out []*transport.Message) {
	ok := s.safely(log, func() {
		texts := codec.Encode(e)
		out = make([]*transport.Message, 0, len(texts))
		for i, p := range texts {
			at := transport.Position{Seq: e.Sequence}
			if i < len(texts)-1 {
				at.Part = i + 1
			}
			out = append(out, transport.New(p, string(e.Type), at))
		}
	})
	if !ok {
		out = []*transport.Message{transport.Text(codec.Fail(fault.New(fault.Internal), s.Clock()))}
	}
	return out
}

// safely calls a codec for a log and reports whether it returned: one that panics
// must not take every gateway down with the log that it cannot read.
func (s *Source) safely(log subject.Log, encode func()) bool { return Safely(s.Logger, log, encode) }

// Safely calls encode for a log and reports whether it returned without a panic.
func Safely(logger zerolog.Logger, log subject.Log, encode func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).
				Stringer("log", log).Msg("failed to encode event")
			ok = false
		}
	}()
	encode()
	return true
}
