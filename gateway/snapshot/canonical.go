package snapshot

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
)

// canonical returns a JSON value in its canonical form (RFC 8785), as a browser reads it: of two members of one name it has the
// later one, and numbers are doubles. It is nil for an absent value.
func canonical(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	var out bytes.Buffer
	write(&out, v)
	return out.Bytes()
}

// textOf returns a JSON string as its text, any other value as canonical JSON, and nothing for none.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s // also of null
	}
	return string(canonical(raw))
}

func write(out *bytes.Buffer, v any) {
	switch x := v.(type) {
	case bool:
		fmt.Fprint(out, x)
	case json.Number:
		writeNumber(out, x)
	case string:
		writeString(out, x)
	case []any:
		out.WriteByte('[')
		for i, one := range x {
			if i > 0 {
				out.WriteByte(',')
			}
			write(out, one)
		}
		out.WriteByte(']')
	case map[string]any:
		out.WriteByte('{')
		for i, name := range slices.SortedFunc(maps.Keys(x), compare) {
			if i > 0 {
				out.WriteByte(',')
			}
			writeString(out, name)
			out.WriteByte(':')
			write(out, x[name])
		}
		out.WriteByte('}')
	default:
		out.WriteString("null")
	}
}

// compare orders names by their UTF-16 units.
func compare(a, b string) int {
	if isASCII(a) && isASCII(b) {
		return cmp.Compare(a, b)
	}
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0
}

// writeNumber writes the nearest double, and null for a number that is too large for one.
func writeNumber(out *bytes.Buffer, n json.Number) {
	f, err := n.Float64()
	if err != nil && f != 0 {
		out.WriteString("null")
		return
	}
	if f == 0 {
		f = 0 // also -0
	}
	text, err := json.Marshal(f) // as ECMAScript does
	if err != nil {
		text = []byte("null")
	}
	out.Write(text)
}

var escapes = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func writeString(out *bytes.Buffer, s string) {
	out.WriteByte('"')
	for _, r := range s {
		switch escape := escapes[r]; {
		case escape != "":
			out.WriteString(escape)
		case r < ' ':
			fmt.Fprintf(out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
}
