package entry

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrBadCursor is wrapped by every error of ParseCursor.
var ErrBadCursor = errors.New("not a log position")

// Cursor is a position in a log: just after the event with sequence Seq, which is stored at sequence Stream of the
// log's stream. The zero Cursor is before the first event.
//
// Stream spares readers the search for the position; 0 means unknown. It is a hint: a wrong value slows reading down
// but does not change its result.
type Cursor struct {
	Seq    uint64 // sequence within the log, dense
	Stream uint64 // sequence within the stream, 0 = unknown
}

// String returns "<seq>.<stream>", or "<seq>" when Stream is unknown.
func (c Cursor) String() string {
	if c.Stream == 0 {
		return strconv.FormatUint(c.Seq, 10)
	}
	return strconv.FormatUint(c.Seq, 10) + "." + strconv.FormatUint(c.Stream, 10)
}

// ParseCursor parses "<seq>" or "<seq>.<stream>". Numbers are plain decimal digits without sign or leading zeros. It
// returns an error that wraps ErrBadCursor for anything else.
func ParseCursor(s string) (Cursor, error) {
	seq, stream, dotted := strings.Cut(s, ".")
	var c Cursor
	var ok bool
	if c.Seq, ok = parseNumber(seq); !ok {
		return Cursor{}, badCursor(s)
	}
	if dotted {
		if c.Stream, ok = parseNumber(stream); !ok {
			return Cursor{}, badCursor(s)
		}
	}
	if c.Seq == 0 {
		c.Stream = 0 // a position before the first event has no stream sequence
	}
	return c, nil
}

func parseNumber(s string) (uint64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

func badCursor(s string) error {
	if len(s) > 60 {
		s = s[:60]
	}
	return fmt.Errorf("%w: %q", ErrBadCursor, s)
}
