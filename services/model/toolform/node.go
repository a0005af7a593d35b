package toolform

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// node is a schema that is an object.
type node = map[string]any

// members returns a JSON object, or none.
func members(v any) node {
	n, _ := v.(node)
	return n
}

// items returns a JSON array, or none.
func items(v any) []any {
	l, _ := v.([]any)
	return l
}

// typesOf returns the types that a rebuilt schema names.
func typesOf(n node) []string {
	switch t := n["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var list []string
		for _, e := range t {
			if s, ok := e.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}

// kindOf returns the type of a value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// target returns the name of the definition that a rebuilt schema refers to.
func target(n node) (string, bool) {
	ref, ok := n["$ref"].(string)
	return strings.TrimPrefix(ref, "#/$defs/"), ok
}

func isOpen(v any) bool { n, ok := v.(node); return ok && len(n) == 0 || v == true }

// both returns a schema of what fits two, the first of which may be missing.
func both(a, b any) any {
	switch {
	case a == nil, isOpen(a), reflect.DeepEqual(a, b):
		return b
	case isOpen(b):
		return a
	}
	return node{"allOf": []any{a, b}}
}

// union returns the elements of two lists, each once.
func union[E comparable](a, b []E) []E {
	return append(slices.Clone(a), slices.DeleteFunc(slices.Clone(b), func(e E) bool { return slices.Contains(a, e) })...)
}

// size returns about the bytes of a value without the schemas in it, which are counted when they are rebuilt.
func size(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case node:
		n := 0
		for key := range v {
			n += len(key)
		}
		return n
	case []any:
		n := 0
		for _, e := range v {
			n += size(e) + 4
		}
		return n
	}
	return 8
}

// weight returns about the bytes of a value.
func weight(v any) int {
	n := size(v)
	switch v := v.(type) {
	case node:
		for _, e := range v {
			n += weight(e)
		}
	case []any:
		for _, e := range v {
			n += weight(e)
		}
	}
	return n
}

func depth(v any) (n int) {
	switch v := v.(type) {
	case node:
		for _, e := range v {
			n = max(n, depth(e))
		}
	case []any:
		for _, e := range v {
			n = max(n, depth(e))
		}
	}
	return n + 1
}

// lookup returns the schema at a JSON pointer.
func lookup(v any, pointer string) (any, bool) {
	if pointer != "" {
		for _, t := range strings.Split(pointer[1:], "/") {
			t = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
			switch in := v.(type) {
			case node:
				v = in[t]
			case []any:
				i, err := strconv.Atoi(t)
				if err != nil || i < 0 || i >= len(in) {
					return nil, false
				}
				v = in[i]
			default:
				return nil, false
			}
		}
	}
	switch v.(type) {
	case bool, node:
		return v, true
	}
	return nil, false
}
