// Package terminal writes text of unknown origin to a person's terminal: it removes sequences that could steer the terminal,
// keeps a status line apart from the text, and knows the terminal's abilities.
package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxSequence bounds the text that an unfinished escape sequence can swallow. Real ones are far shorter, hyperlinks
// included.
const maxSequence = 2048

// Stripper removes escape sequences and every other control character but
// newline and tab, and invisible characters of format.
// Bytes that are not UTF-8 become U+FFFD. A sequence may be spread over several
// calls of Strip. The zero value is ready; it is not safe for concurrent use.
type Stripper struct {
	state   state
	swallow int
	partial []byte // the beginning of a rune that was cut between two calls
}

type state int

const (
	ground  state = iota
	escape        // after ESC
	control       // in a control sequence, ESC [ ... final byte
	text          // in a control string, ESC ] ... BEL or ESC \
	textEnd       // after ESC within a control string
)

// Strip returns the printable part of s.
func (s *Stripper) Strip(in string) string {
	if len(s.partial) > 0 {
		in = string(s.partial) + in
		s.partial = nil
	}
	var out strings.Builder
	for len(in) > 0 {
		if !utf8.FullRuneInString(in) {
			s.partial = []byte(in)
			break
		}
		r, n := utf8.DecodeRuneInString(in)
		in = in[n:]
		if s.step(r) {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// step advances the state and reports whether to print r.
func (s *Stripper) step(r rune) bool {
	if s.state != ground {
		s.swallow++
		if r == '\n' || s.swallow > maxSequence {
			s.state = ground
		}
	}
	switch s.state {
	case escape:
		s.state = afterEscape(r)
		return false
	case control:
		if r >= 0x40 && r <= 0x7e {
			s.state = ground
		}
		return false
	case text:
		switch r {
		case '\a', 0x9c:
			s.state = ground
		case 0x1b:
			s.state = textEnd
		}
		return false
	case textEnd:
		s.state = text
		if r == '\\' {
			s.state = ground
		}
		return false
	}
	return s.print(r)
}

func afterEscape(r rune) state {
	switch r {
	case '[':
		return control
	case ']', 'P', 'X', '^', '_':
		return text
	case 0x1b:
		return escape
	case ' ', '#', '%', '(', ')', '*', '+', '-', '.', '/': // one more character follows
		return escape
	}
	return ground
}

func (s *Stripper) print(r rune) bool {
	switch r {
	case '\n', '\t':
		return true
	case 0x1b:
		s.begin(escape)
		return false
	case 0x9b:
		s.begin(control)
		return false
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f:
		s.begin(text)
		return false
	}
	return printable(r)
}

func (s *Stripper) begin(st state) { s.state, s.swallow = st, 0 }

// printable refuses control characters and characters of format (category Cf), which are invisible, or reorder text so that it
// looks like other text.
func printable(r rune) bool {
	return !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r) && r != '\u2028' && r != '\u2029'
}

// Strip strips a complete text with a new Stripper.
func Strip(in string) string {
	var s Stripper
	out := s.Strip(in)
	if len(s.partial) > 0 {
		out += "\uFFFD"
	}
	return out
}

// Line returns the text on one line of at most limit characters.
func Line(in string, limit int) string {
	words := strings.Join(strings.Fields(Strip(in)), " ")
	if utf8.RuneCountInString(words) <= limit {
		return words
	}
	return string([]rune(words)[:max(limit-1, 0)]) + "…"
}

// ASCII returns JSON with every control character beyond ASCII, and every invisible
// character of format, as an escape: the same value, harmless on a terminal.
func ASCII(raw []byte) []byte {
	out := make([]byte, 0, len(raw)+1)
	for _, r := range string(raw) {
		switch {
		case r == '\n' || r == '\r':
			out = append(out, ' ')
		case r > 0x7e && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)):
			for _, unit := range utf16.AppendRune(nil, r) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		default:
			out = append(out, string(r)...)
		}
	}
	return out
}
