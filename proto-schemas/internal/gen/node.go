package gen

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// node is a JSON Schema.
type node = map[string]any

// members are named schemas in a fixed order.
type members struct {
	names []string
	of    map[string]node
}

func newMembers() *members { return &members{of: map[string]node{}} }

func (m *members) set(name string, s node) {
	if _, ok := m.of[name]; !ok {
		m.names = append(m.names, name)
	}
	m.of[name] = s
}

// keywords are those of JSON Schema, in a readable order. Any other name follows them, sorted.
var keywords = []string{
	"$schema", "$id", "$ref", "title", "description", "type", "const", "enum", "format", "pattern", "minLength", "maxLength",
	"minimum", "maximum", "minItems", "maxItems", "items", "allOf", "properties", "required", "dependentRequired", "if", "then", "else",
	"anyOf", "oneOf", "not", "additionalProperties", "unevaluatedProperties", "$defs",
}

// width is the longest line of a bundle before a value takes several lines: that of the documentation's tables.
const width = 120

// encode returns a bundle as a file: a value takes one line if it fits.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := writeValue(&b, v, 0, 0); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// writeValue writes a value that begins at a column of a line with an indentation.
func writeValue(b *bytes.Buffer, v any, indent, column int) error {
	names, values, brackets := parts(v)
	if brackets == "" {
		return scalar(b, v)
	}
	var line bytes.Buffer
	if err := inline(&line, names, values, brackets); err != nil {
		return err
	}
	if column+line.Len() < width || len(values) == 0 {
		b.Write(line.Bytes())
		return nil
	}
	b.WriteByte(brackets[0])
	if names == nil && !holdsParts(values) {
		return filled(b, values, indent)
	}
	for i, value := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		start := b.Len()
		b.WriteString("\n" + strings.Repeat("  ", indent+1))
		if names != nil {
			fmt.Fprintf(b, "%q: ", names[i])
		}
		if err := writeValue(b, value, indent+1, b.Len()-start); err != nil {
			return err
		}
	}
	b.WriteString("\n" + strings.Repeat("  ", indent))
	b.WriteByte(brackets[1])
	return nil
}

func holdsParts(values []any) bool {
	return slices.ContainsFunc(values, func(v any) bool {
		_, _, brackets := parts(v)
		return brackets != ""
	})
}

// filled writes the rest of a list of scalars on as few lines as it needs.
func filled(b *bytes.Buffer, values []any, indent int) error {
	begin, start := "\n"+strings.Repeat("  ", indent+1), 0
	for i, value := range values {
		var s bytes.Buffer
		if err := scalar(&s, value); err != nil {
			return err
		}
		switch {
		case i == 0:
			start = b.Len()
			b.WriteString(begin)
		case b.Len()-start+len(", ")+s.Len() > width:
			b.WriteByte(',')
			start = b.Len()
			b.WriteString(begin)
		default:
			b.WriteString(", ")
		}
		b.Write(s.Bytes())
	}
	b.WriteString(begin[:len(begin)-2] + "]")
	return nil
}

func inline(b *bytes.Buffer, names []string, values []any, brackets string) error {
	b.WriteByte(brackets[0])
	for i, value := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		if names != nil {
			fmt.Fprintf(b, "%q: ", names[i])
		}
		inner, of, around := parts(value)
		var err error
		if around == "" {
			err = scalar(b, value)
		} else {
			err = inline(b, inner, of, around)
		}
		if err != nil {
			return err
		}
	}
	b.WriteByte(brackets[1])
	return nil
}

// parts returns the elements of an object or a list, and its brackets; a scalar has neither.
func parts(v any) (names []string, values []any, brackets string) {
	switch v := v.(type) {
	case *members:
		for _, name := range v.names {
			values = append(values, v.of[name])
		}
		return v.names, values, "{}"
	case node:
		names = slices.SortedFunc(maps.Keys(v), byKeyword)
		for _, name := range names {
			values = append(values, v[name])
		}
		return names, values, "{}"
	case []any:
		return nil, v, "[]"
	case []node:
		for _, n := range v {
			values = append(values, n)
		}
		return nil, values, "[]"
	case []string:
		for _, s := range v {
			values = append(values, s)
		}
		return nil, values, "[]"
	}
	return nil, nil, ""
}

func byKeyword(a, b string) int {
	at, bt := slices.Index(keywords, a), slices.Index(keywords, b)
	switch {
	case at < 0 && bt < 0:
		return strings.Compare(a, b)
	case at < 0:
		return 1
	case bt < 0:
		return -1
	}
	return at - bt
}

// scalar writes a value without the escapes for HTML.
func scalar(b *bytes.Buffer, v any) error {
	text, err := plainjson.Marshal(v)
	b.Write(text)
	return err
}
