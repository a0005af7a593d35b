// Package jsontext measures texts as encoding/json writes them.
package jsontext

import "unicode/utf8"

// Fit returns the longest prefix of s whose JSON string has at most limit bytes, and
// whether that is not all of s.
func Fit(s string, limit int) (string, bool) {
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

// Len is the length of s in a JSON string, without the quotes.
func Len(s string) int {
	size := 0
	for i, r := range s {
		size += encoded(s, i, r)
	}
	return size
}
