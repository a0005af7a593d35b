package plan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// first returns the first byte of a JSON value, 0 for none.
func first(raw []byte) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) > 0 {
		return raw[0]
	}
	return 0
}

// object is a JSON object whose members are found by any of their names.
type object map[string]json.RawMessage

func asObject(v json.RawMessage) (object, bool) {
	var o object
	return o, first(v) == '{' && json.Unmarshal(v, &o) == nil
}

// keys returns the members with the name, the exact one first and the others in
// alphabetical order.
func (o object) keys(name string) []string {
	var out []string
	for key := range o {
		if canonical(key) == name {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	if i := slices.Index(out, name); i > 0 {
		out = append([]string{name}, slices.Delete(out, i, i+1)...)
	}
	return out
}

func canonical(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToLower(key))
}

// find returns the first member with one of the names.
func (o object) find(names []string) (key string, ok bool) {
	for _, n := range names {
		if keys := o.keys(n); len(keys) > 0 {
			return keys[0], true
		}
	}
	return "", false
}
