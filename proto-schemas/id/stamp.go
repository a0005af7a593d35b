package id

import (
	"strconv"
	"strings"
	"time"
)

// Stamp returns the time in an id that begins with a UUID of version 7. ok is false for any other id.
func Stamp(s string) (at time.Time, ok bool) {
	const form = "00000000-0000-7000-0000-000000000000"
	if len(s) < len(form) {
		return at, false
	}
	for i, c := range []byte(form) {
		switch {
		case c == '0' && !strings.ContainsRune("0123456789abcdef", rune(s[i])), c != '0' && s[i] != c:
			return at, false
		}
	}
	ms, err := strconv.ParseInt(s[:8]+s[9:13], 16, 64)
	return time.UnixMilli(ms).UTC(), err == nil
}
