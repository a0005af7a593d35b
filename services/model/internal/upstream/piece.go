package upstream

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Piece is a piece of a streamed text: a string, null, or a list of strings and parts such as
//
//	[{"type":"thinking","thinking":[{"type":"text","text":"Let me see."}]},{"type":"text","text":"Hello"}]
//
// as Mistral's reasoning models send it. Parts of other types are left out. A character may be split between two pieces; the
// halves join in a [Sink].
type Piece struct {
	Text    []byte // not always whole UTF-8
	Thought []byte // the part that is reasoning
}

// UnmarshalJSON implements json.Unmarshaler. It takes any JSON value.
func (p *Piece) UnmarshalJSON(raw []byte) error {
	*p = Piece{}
	p.add(raw, false, maxPartDepth)
	return nil
}

// Empty reports whether the piece has neither text nor reasoning.
func (p Piece) Empty() bool { return len(p.Text) == 0 && len(p.Thought) == 0 }

// maxPartDepth bounds the nesting of parts; the deepest known has three levels.
const maxPartDepth = 8

func (p *Piece) add(raw []byte, thought bool, depth int) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || depth == 0 {
		return
	}
	switch raw[0] {
	case '"':
		if thought {
			p.Thought = append(p.Thought, unquote(raw)...)
		} else {
			p.Text = append(p.Text, unquote(raw)...)
		}
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil {
			for _, e := range list {
				p.add(e, thought, depth-1)
			}
		}
	case '{':
		var part struct {
			Type      Word            `json:"type"`
			Text      json.RawMessage `json:"text"`
			Thinking  json.RawMessage `json:"thinking"`
			Reasoning json.RawMessage `json:"reasoning"`
			Refusal   json.RawMessage `json:"refusal"`
		}
		if json.Unmarshal(raw, &part) != nil {
			return
		}
		switch part.Type {
		case "", "text", "output_text":
			p.add(part.Text, thought, depth-1)
		case "refusal":
			p.add(part.Refusal, thought, depth-1)
		case "thinking", "reasoning", "reasoning_text", "summary_text":
			for _, member := range []json.RawMessage{part.Thinking, part.Reasoning, part.Text} {
				p.add(member, true, depth-1)
			}
		}
	}
}

// Arguments is a piece of a call's arguments: JSON in a string, or the object itself.
type Arguments []byte

// UnmarshalJSON implements json.Unmarshaler. It takes any JSON value.
func (a *Arguments) UnmarshalJSON(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) > 0 && raw[0] == '"':
		*a = unquote(raw)
	case string(raw) == "null":
		*a = nil
	default:
		*a = bytes.Clone(raw)
	}
	return nil
}

// Word is a name or an id: a string, or a number as its digits. Other values are empty.
type Word string

// UnmarshalJSON implements json.Unmarshaler. It takes any JSON value.
func (w *Word) UnmarshalJSON(raw []byte) error {
	var s string
	switch {
	case json.Unmarshal(raw, &s) == nil:
		*w = Word(s)
	case len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9'):
		*w = Word(raw)
	default:
		*w = ""
	}
	return nil
}

// Count is a number of tokens, or an index. Servers send 12.0 for 12, and -1 or null for an unknown number.
type Count struct {
	N     int64
	Known bool // N is a whole number from 0 to a trillion
}

// maxCount is above any count that a provider could bill.
const maxCount = 1e12

// UnmarshalJSON implements json.Unmarshaler. It takes any JSON value: any other than a count is unknown.
func (c *Count) UnmarshalJSON(raw []byte) error {
	*c = Count{}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err == nil && f >= 0 && f <= maxCount && f == float64(int64(f)) {
		*c = Count{N: int64(f), Known: true}
	}
	return nil
}

// unquote returns the bytes of a JSON string whose syntax is valid. Halves of surrogate pairs and cut UTF-8 sequences stay,
// where encoding/json replaces them: the other half may be in the next piece.
func unquote(raw []byte) []byte {
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return bytes.Clone(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if raw[i] != 'u' {
			out = append(out, escapes[raw[i]])
			continue
		}
		r := hex4(raw[i+1:])
		i += 4
		if isHigh(r) && i+6 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' && isLow(hex4(raw[i+3:])) {
			r = joined(r, hex4(raw[i+3:]))
			i += 6
		}
		out = appendRune(out, r)
	}
	return out
}

// escapes are the characters after the escapes of one letter.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func hex4(b []byte) rune {
	n, err := strconv.ParseInt(string(b[:min(4, len(b))]), 16, 32)
	if err != nil {
		return utf8.RuneError // unreachable: the syntax is valid
	}
	return rune(n)
}

func isHigh(r rune) bool { return r >= 0xD800 && r < 0xDC00 }
func isLow(r rune) bool  { return r >= 0xDC00 && r < 0xE000 }

func joined(high, low rune) rune { return (high-0xD800)<<10 | (low - 0xDC00) + 0x10000 }

// appendRune appends the rune as UTF-8, and half of a surrogate pair likewise, as three bytes, which are not valid.
func appendRune(out []byte, r rune) []byte {
	if isHigh(r) || isLow(r) {
		return append(out, 0xE0|byte(r>>12&0x0F), 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
	}
	return utf8.AppendRune(out, r)
}

// joiner puts characters together that were split between pieces. A half that never gets its other becomes U+FFFD.
type joiner struct{ held []byte }

// add returns the whole characters so far.
func (j *joiner) add(piece []byte) string {
	if len(j.held) == 0 && utf8.Valid(piece) {
		return string(piece)
	}
	all := append(j.held, piece...)
	n := len(all) - unfinished(all)
	j.held = bytes.Clone(all[n:])
	return whole(all[:n])
}

// rest returns what was held back.
func (j *joiner) rest() string {
	held := j.held
	j.held = nil
	return whole(held)
}

// unfinished returns the length of the end of b that needs further bytes: a cut UTF-8 sequence, or the first half of a
// surrogate pair with the part of the second that has come.
func unfinished(b []byte) int {
	n := cut(b)
	if before := b[:len(b)-n]; endsHigh(before) && (n == 0 || b[len(b)-n] == 0xED) {
		return n + 3
	}
	return n
}

// cut returns the length of the cut UTF-8 sequence at the end of b.
func cut(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		c := b[len(b)-n]
		switch {
		case c >= 0xF0 && c < 0xF8 && n < 4, c >= 0xE0 && c < 0xF0 && n < 3, c >= 0xC0 && c < 0xE0 && n < 2:
			return n
		case c < 0x80 || c >= 0xC0:
			return 0
		}
	}
	return 0
}

func endsHigh(b []byte) bool {
	n := len(b)
	return n >= 3 && isHigh(half(b[n-3:]))
}

// half returns the half of a surrogate pair at the beginning of b, or 0.
func half(b []byte) rune {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2]&0xC0 != 0x80 {
		return 0
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F)
}

// Join returns pieces that were put together as UTF-8: halves of characters are joined.
func Join(pieces []byte) string { return whole(pieces) }

// whole returns b as UTF-8.
func whole(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if h := half(b); h != 0 {
			r, n = utf8.RuneError, 3
			if l := half(b[3:]); isHigh(h) && isLow(l) {
				r, n = joined(h, l), 6
			}
		}
		out = utf8.AppendRune(out, r)
		b = b[n:]
	}
	return string(out)
}
