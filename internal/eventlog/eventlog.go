// Package eventlog is the only reader and the only writer of the event logs.
//
// A log is the ordered list of one entity's events: seq 1, 2, 3, ... without gaps or duplicates. It is stored under
// one JetStream subject (evt.<p>.<log>), and every event is announced once more on core NATS (live.<log>.<type>).
//
// Writing: a [Writer] appends with the expected last sequence of the subject. It never blindly repeats an append with
// an unknown outcome: it reads on from its last known event, adopts the entries that it finds and looks for its own
// event. [Deltas] merges streamed text while an append is in flight, because a replicated stream takes one
// conditional append per log at a time.
//
// Reading: a [Viewer] subscribes to the announcements first, then reads history by batched direct get and joins the
// two by seq. Announcements are hints: they may be lost, duplicated or late. The Store fills gaps by reading, and
// compares the tail of every watched log with the stream at intervals and after each event that may lose
// announcements (reconnect, slow consumer, new stream leader). It has one subscription per watched log, for any
// number of viewers, and does not need a goroutine per log or viewer.
//
// A process does not read what it wrote: the Store remembers the last events that its own services appended (ReadOwn,
// [Writer.Recall]), and compares the stream sequence, so that a log which was replaced meanwhile is read. The scanner of
// the stored form makes one pass without copies and accepts nothing that the JSON decoder would refuse; other forms go to
// that decoder. A member added to event.Event needs a line in it.
//
// Rings of recent events are bounded in bytes, with frames, headers and what the garbage collector keeps free. Lost
// announcements are left to the log: a log is checked 250 ms later, however many were lost, and eight logs heal at a time.
// The client library reports only the first loss in a row, so the number of lost messages of each subscription is compared
// each second.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/waggle-dev/waggle/internal/eventlog/internal/entry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// Entry is one stored event of a log. All viewers of the log share it, so it must not be modified.
type Entry = entry.Entry

// Cursor is a position in a log: just after the event with sequence Seq, which is stored at sequence Stream of the
// log's stream. The zero Cursor is before the first event.
type Cursor = entry.Cursor

// ParseCursor parses "<seq>" or "<seq>.<stream>". Numbers are plain decimal digits without sign or leading zeros. It
// returns an error that wraps ErrBadCursor for anything else.
func ParseCursor(s string) (Cursor, error) { return entry.ParseCursor(s) }

// Merge merges consecutive deltas of one message, as for a viewer that was full. The entries must follow each other
// in a log. The slice is not modified.
func Merge(list []*Entry) []*Entry { return entry.Merge(list) }

// Errors of this package. Failures of the bus that outlast the retry budget become fault.BusUnavailable.
var (
	// ErrBadCursor is wrapped by every error of ParseCursor.
	ErrBadCursor = entry.ErrBadCursor
	// ErrUnreadable is wrapped by errors about a stored message that is not an event of its log.
	ErrUnreadable = entry.ErrUnreadable
	// ErrBeyondEnd means that a position lies beyond the end of its log: the position was never issued, or the log was
	// lost or has expired completely.
	ErrBeyondEnd = errors.New("position is beyond the end of the log")
	// ErrClosed means that the Store was closed.
	ErrClosed = errors.New("event log store is closed")
	// ErrRefused is wrapped when the bus refuses an append permanently: the event is too big, has an invalid name, or its
	// dedupe id belongs to another message.
	ErrRefused = errors.New("append refused")

	// errNone means that the stream leader does not have the message.
	errNone = errors.New("no message")
)

// TruncatedError means that events after the wanted position have expired.
type TruncatedError struct {
	First uint64 // sequence of the oldest remaining event
}

// Error implements error.
func (e *TruncatedError) Error() string {
	return "the log begins at seq " + strconv.FormatUint(e.First, 10) + ", earlier events have expired"
}

// apiError is an error answer of JetStream.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     uint16 `json:"err_code"`
	Description string `json:"description"`
}

// Error implements error.
func (e *apiError) Error() string {
	return fmt.Sprintf("jetstream error %d: %s", e.ErrCode, e.Description)
}

// JetStream error codes that this package handles.
const (
	codeNoMessage     = 10037
	codeWrongLast     = 10071 // another writer appended; the text ends with the real last sequence
	codeWrongLastBusy = 10164 // another append to the same subject is in flight
	codeIDInFlight    = 10158 // a message with the same dedupe id is in flight
	codeNoStream      = 10059 // stream not found; also the answer of a server that shuts down or starts
)

// permanent reports whether a retry cannot help. Errors of the class 4xx concern the request, all others the state of
// the bus.
func permanent(err error) bool {
	if a, ok := errors.AsType[*apiError](err); ok {
		switch a.ErrCode {
		case codeWrongLast, codeWrongLastBusy, codeIDInFlight, codeNoStream:
			return false
		}
		return a.Code >= 400 && a.Code < 500
	}
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload) ||
		errors.Is(err, nats.ErrHeadersNotSupported) || errors.Is(err, ErrUnreadable) ||
		errors.Is(err, ErrBeyondEnd) || errors.Is(err, ErrRefused) || errors.Is(err, ErrDeleted) || errors.Is(err, ErrClosed)
}

// unavailable wraps the last error of the bus after the budget is spent.
func unavailable(cause error) error { return fault.New(fault.BusUnavailable).Wrap(cause) }

// ended returns ctx's error if ctx has ended: then err is only its consequence.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
