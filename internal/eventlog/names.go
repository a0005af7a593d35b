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
