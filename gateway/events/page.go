package events

import (
	"context"
	"errors"

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

// Page answers with the events of a log after a position, up to the one with the sequence last, as far as they fit into the queue of the
// answer. An empty answer means that no event follows the position. If the events right after the position have expired, it ends
// with a fault, as a page with a hole would look complete.
func Page(ctx context.Context, src *stream.Source, log subject.Log, after eventlog.Cursor, last uint64, to Answer) {
	err := stream.Read(ctx, src.Log, log, after, last, func(entry *eventlog.Entry) error {
		e, err := src.Loader.Event(ctx, log, entry.Event)
		if err != nil {
			return err
		}
		if ms := src.Encode(log, codec, e); to.Send(ms...) < len(ms) {
			return stream.ErrEnough
		}
		return nil
	})
	cut, expired := errors.AsType[*eventlog.TruncatedError](err)
	switch {
	case err == nil:
		to.Complete()
	case expired:
		to.End(fault.Newf(fault.HeadExpired, "The next events have expired. Request the remaining ones, after %d.", cut.First-1))
	default:
		End(to, fault.From(stream.Gone(err), ""))
	}
}
