package events

import (
	"context"

	"github.com/waggle-dev/waggle/gateway/stream"
	"github.com/waggle-dev/waggle/gateway/transport"
	"github.com/waggle-dev/waggle/internal/eventlog"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Answer is a transport with one answer, which can end complete.
type Answer interface {
	transport.Transport
	// Complete ends the answer with what was accepted so far.
	Complete()
}

// Page answers with the events that a log has, as many of them as the queue of the answer
// holds. An answer without events says that no event follows the position.
type Page struct{ Log }

var _ stream.Binding = (*Page)(nil)

// NewPage answers with the events of a log behind after, up to the one with the sequence
// last. An answer that cannot be given ends with a fault, also where the events behind
// after have expired.
func NewPage(ctx context.Context, src *stream.Source, log subject.Log, after eventlog.Cursor, last uint64, to Answer) *Page {
	p := &Page{Log{to: to}}
	p.stream = stream.New(src, stream.Options{Life: ctx, Log: log, Codec: codec, To: &page{to, last}, Slot: stream.NewSlot(), Binding: p})
	if after.Seq >= last {
		to.Complete()
		return p
	}
	p.stream.Watch(after, nil)
	return p
}

// Expired implements stream.Binding: a page with a hole would look complete.
func (p *Page) Expired(_ *stream.Stream, first uint64) {
	p.to.End(fault.Newf(fault.HeadExpired, "The next events have expired. Request the remaining ones, after %d.", first-1))
}

// page completes its answer with the last event, or with the last that has room.
type page struct {
	Answer
	last uint64
}

// Send implements transport.Transport.
func (p *page) Send(ms ...*transport.Message) int {
	n := p.Answer.Send(ms...)
	if n < len(ms) || n > 0 && ms[n-1].Position.Seq >= p.last {
		p.Complete()
	}
	return n
}
