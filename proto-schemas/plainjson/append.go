package plainjson

import "unicode/utf8"

// Appender is implemented by data that is encoded often.
type Appender interface {
	// AppendJSON appends what Marshal returns for the value.
	AppendJSON(b []byte) []byte
}

// Append appends v as JSON, without reflection where v is an Appender. It fails as Marshal does.
func Append(b []byte, v any) ([]byte, error) {
	if a, ok := v.(Appender); ok {
		return a.AppendJSON(b), nil
	}
	p, err := Marshal(v)
	return append(b, p...), err
}

// AppendString appends s as Marshal encodes it.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		n, escaped := 1, ""
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			n, escaped = beyondASCII(s[i:])
		case c < ' ' || c == '"' || c == '\\':
			escaped = escapes[c]
		}
		if escaped != "" {
			b = append(append(b, s[done:i]...), escaped...)
			done = i + n
		}
		i += n
	}
	return append(append(b, s[done:]...), '"')
}

// beyondASCII returns the length of the first character, and how it is written unless as it is: bytes that are not
// UTF-8 are replaced, and the two separators that JavaScript takes for line ends are escaped.
func beyondASCII(s string) (n int, escaped string) {
	switch r, n := utf8.DecodeRuneInString(s); {
	case r == utf8.RuneError && n == 1:
		return n, `\ufffd`
	case r == '\u2028':
		return n, `\u2028`
	case r == '\u2029':
		return n, `\u2029`
	default:
		return n, ""
	}
}

// escapes are the forms of the characters of ASCII that a string cannot hold as they are.
var escapes = func() (out ['\\' + 1]string) {
	const digits = "0123456789abcdef"
	for c := range byte(' ') {
		out[c] = `\u00` + string(digits[c>>4]) + string(digits[c&0xf])
	}
	for c, short := range map[byte]string{'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '"': `\"`, '\\': `\\`} {
		out[c] = short
	}
	return out
}()
