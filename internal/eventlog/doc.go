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
package eventlog

import "github.com/waggle-dev/waggle/internal/eventlog/internal/entry"

// Entry is one stored event of a log. All viewers of the log share it, so it must not be modified.
type Entry = entry.Entry

// Cursor is a position in a log: just after the event with sequence Seq, which is stored at sequence Stream of the
// log's stream. The zero Cursor is before the first event.
type Cursor = entry.Cursor

// Errors about positions and stored messages.
var (
	// ErrBadCursor is wrapped by every error of ParseCursor.
	ErrBadCursor = entry.ErrBadCursor
	// ErrUnreadable is wrapped by errors about a stored message that is not an event of its log.
	ErrUnreadable = entry.ErrUnreadable
)

// ParseCursor parses "<seq>" or "<seq>.<stream>". Numbers are plain decimal digits without sign or leading zeros. It
// returns an error that wraps ErrBadCursor for anything else.
func ParseCursor(s string) (Cursor, error) { return entry.ParseCursor(s) }

// Merge merges consecutive deltas of one message, as for a viewer that was full. The entries must follow each other
// in a log. The slice is not modified.
func Merge(list []*Entry) []*Entry { return entry.Merge(list) }
