package worker

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxText bounds, in bytes as encoded, a text that goes into one event: a stored
// event may have 256 KiB with everything else that it says.
const maxText = 160 << 10

// maxMessage bounds the bytes of a message with the arguments of its calls: they are stored as one event, with room for policies.
const maxMessage = 200 << 10

// fitting returns the calls of a message with the text. Those whose arguments do not fit into its event lose them, and
// say why they cannot be made: the model learns it, and can call again with less.
func fitting(calls []event.ToolCall, text string) []event.ToolCall {
	out, left := slices.Clone(calls), maxMessage
	if said, err := json.Marshal(text); err == nil { // a string can be encoded
		left -= len(said)
	}
	for i := range out {
		c := &out[i]
		if n := len(c.Arguments); n <= left {
			left -= n
			continue
		}
		c.Invalid = fmt.Sprintf("The arguments are too large: %d bytes, and %d are left for them in this message. Nothing was called. Call the tool again with less at a time.",
			len(c.Arguments), max(left, 0))
		c.Arguments = json.RawMessage(`{}`)
	}
	return out
}

// fit returns the longest prefix of s whose JSON string has at most limit bytes, and
// whether that is not all of s.
func fit(s string, limit int) (string, bool) {
	size := 0
	for i, r := range s {
		size += encoded(s, i, r)
		if size > limit {
			return s[:i], true
		}
	}
	return s, false
}

// encoded is the length of a character in a JSON string as encoding/json writes it.
func encoded(s string, at int, r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return 2
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029':
		return len(`\u003c`)
	case r == utf8.RuneError:
		if _, width := utf8.DecodeRuneInString(s[at:]); width == 1 {
			return len(`\ufffd`)
		}
	}
	return utf8.RuneLen(r)
}

// encodedLen is the length of s in a JSON string, without the quotes.
func encodedLen(s string) int {
	size := 0
	for i, r := range s {
		size += encoded(s, i, r)
	}
	return size
}
