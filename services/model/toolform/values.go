package toolform

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// builder rebuilds a document of valid keywords only.
type builder struct {
	doc     any
	dialect Dialect
	room    int               // bytes that are left
	steps   int               // of flatten and of Gemini's form
	defs    node              // rebuilt targets of references, by name
	names   map[string]string // of the targets, by their JSON pointers
	queue   []string          // pointers of targets that are not rebuilt yet
}

func newBuilder(doc any, d Dialect) *builder {
	return &builder{doc: doc, dialect: d, room: room, steps: steps, defs: node{}, names: make(map[string]string)}
}

// typeNames are the types, and words that other languages have for them.
var typeNames = map[string]string{
	"null": "null", "boolean": "boolean", "number": "number", "integer": "integer", "string": "string", "array": "array", "object": "object",
	"none": "null", "bool": "boolean", "float": "number", "double": "number", "decimal": "number", "int": "integer", "int32": "integer",
	"int64": "integer", "long": "integer", "str": "string", "text": "string", "list": "array", "dict": "object", "map": "object",
}

func (b *builder) types(v any) (any, bool) {
	var list []any
	for _, w := range append(items(v), v) {
		word, _ := w.(string)
		if name := typeNames[strings.ToLower(word)]; name != "" && !slices.Contains(list, any(name)) {
			list = append(list, name)
		}
	}
	if len(list) == 1 {
		return list[0], true
	}
	return list, len(list) > 0
}

// ref names the target of a reference. References to elsewhere are dropped.
func (b *builder) ref(v any) (any, bool) {
	text, _ := v.(string)
	_, fragment, local := strings.Cut(text, "#")
	fragment, err := url.PathUnescape(fragment)
	if !local || err != nil || fragment != "" && fragment[0] != '/' {
		return nil, false
	}
	if _, ok := lookup(b.doc, fragment); !ok {
		return nil, false
	}
	name := b.names[fragment]
	if name == "" {
		name = b.name(fragment)
		b.names[fragment] = name
		b.queue = append(b.queue, fragment)
	}
	return "#/$defs/" + name, true
}

// name returns a new name for a target: the last part of its pointer.
func (b *builder) name(at string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, at[strings.LastIndexByte(at, '/')+1:])
	if name == "" {
		name = "arguments"
	}
	name = name[:min(len(name), 48)]
	taken := slices.Collect(maps.Values(b.names))
	for i, base := 2, name; slices.Contains(taken, name); i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	return name
}

func (b *builder) text(v any) (any, bool) { s, ok := v.(string); return s, ok }
func (b *builder) flag(v any) (any, bool) { f, ok := v.(bool); return f, ok }

func (b *builder) value(v any) (any, bool) {
	b.room -= weight(v)
	return v, true
}

func (b *builder) values(v any) (any, bool) {
	b.room -= weight(v)
	list := items(v)
	return list, len(list) > 0
}

func (b *builder) number(v any) (any, bool) {
	n, ok := v.(json.Number)
	f, err := n.Float64()
	return n, ok && err == nil && f-f == 0
}

func (b *builder) positive(v any) (any, bool) {
	n, ok := b.number(v)
	return n, ok && !strings.HasPrefix(fmt.Sprint(n), "-") && strings.ContainsAny(fmt.Sprint(n), "123456789")
}

func (b *builder) count(v any) (any, bool) {
	n, ok := v.(json.Number)
	i, err := n.Int64()
	return n, ok && err == nil && i >= 0
}

// pattern keeps the regular expressions that every provider reads: some have no look-around, as Go, and some take a
// bracket within a class for another class.
func (b *builder) pattern(v any) (any, bool) {
	s, ok := v.(string)
	return s, ok && readable(s)
}

func readable(pattern string) bool {
	if _, err := syntax.Parse(pattern, syntax.Perl); err != nil || len(pattern) > 4<<10 {
		return false
	}
	class := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '[' && class:
			return false
		case c == '[':
			class = true
			if strings.HasPrefix(pattern[i+1:], "^") {
				i++
			}
			if strings.HasPrefix(pattern[i+1:], "]") {
				return false // a bracket in Go, the end of an empty class in ECMAScript
			}
		case c == ']':
			class = false
		}
	}
	return true
}

func (b *builder) words(v any) (any, bool) {
	var list []any
	for _, w := range items(v) {
		if s, ok := w.(string); ok && !slices.Contains(list, w) {
			list = append(list, s)
		}
	}
	return list, len(list) > 0
}

func (b *builder) dependent(v any) (any, bool) {
	out := node{}
	for name, list := range members(v) {
		if w, ok := b.words(list); ok {
			out[name] = w
		}
	}
	return out, len(out) > 0
}
