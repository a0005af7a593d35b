// Package strict reads frames whose members have to be as a protocol says, and tells the
// first one that is not.
package strict

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// sampleLimit bounds how much of a wrong value is given back, in characters: enough to
// recognise it.
const sampleLimit = 40

// AnObject is the rule for a member that has to be an object, in words.
const AnObject = "an object"

// Object is a JSON object of a frame. A map keeps the names of its members exact, which
// decoding into a struct would not. The zero object has no members.
type Object struct {
	Path    string // where it is in the frame
	Members map[string]json.RawMessage
}

// Get returns a member, nil if it is absent or null.
func (o Object) Get(name string) json.RawMessage {
	if raw := o.Members[name]; string(raw) != "null" {
		return raw
	}
	return nil
}

// At returns the path of a member.
func (o Object) At(name string) string {
	if o.Path == "" {
		return name
	}
	return o.Path + "." + name
}

// Rest returns what the object has besides the named members and null ones, nil if that
// is nothing.
func (o Object) Rest(known ...string) map[string]json.RawMessage {
	var more map[string]json.RawMessage
	for name, raw := range o.Members {
		if slices.Contains(known, name) || string(raw) == "null" {
			continue
		}
		if more == nil {
			more = map[string]json.RawMessage{}
		}
		more[name] = raw
	}
	return more
}

// Reader reads the members of a frame. Its fault tells of the first wrong one; members that
// are read after that do not count.
type Reader struct{ Fault *fault.Fault }

// Err returns the fault, nil without one.
func (r *Reader) Err() error {
	if r.Fault == nil {
		return nil
	}
	return r.Fault
}

// Wrong notes that a field is not as the rule says. Its value is nil if it is missing;
// the empty field is the whole message.
func (r *Reader) Wrong(field, rule string, value []byte) {
	if r.Fault != nil {
		return
	}
	what := field
	if what == "" {
		what = "A message"
	}
	if value == nil {
		r.Fault = fault.Newf(fault.InvalidField, "%s is missing: it must be %s. Add it and send the message again.", what, rule).At(field).Unlike(rule, nil)
		return
	}
	r.Fault = fault.Newf(fault.InvalidField, "%s must be %s. Correct it and send the message again.", what, rule).At(field).Unlike(rule, Sample(value))
}

// Object reads a member that is an object. An absent one has no members.
func (r *Reader) Object(o Object, name string) Object {
	raw := o.Get(name)
	inner := Object{Path: o.At(name)}
	if raw == nil {
		return inner
	}
	var ok bool
	if inner.Members, ok = Members(raw); !ok {
		r.Wrong(inner.Path, AnObject, raw)
	}
	return inner
}

// Members returns the members of a JSON object, and false if raw is anything else.
func Members(raw []byte) (map[string]json.RawMessage, bool) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	var m map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &m) != nil {
		return nil, false
	}
	return m, true
}

// OnlyAnswer returns a fault if the object at path, an answer to a question, has members besides the known ones. An answer
// that says more than a protocol knows might approve something else than its sender believes.
func OnlyAnswer(path string, m map[string]json.RawMessage, known ...string) *fault.Fault {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, name) {
			field := Object{Path: path}.At(Cut(name, sampleLimit))
			return fault.Newf(fault.InvalidField, "This question does not accept %s in its answer. Nothing was answered. Send only: %s.",
				field, strings.Join(known, ", ")).At(field)
		}
	}
	return nil
}

// Text returns the JSON string raw, and false if raw is anything else.
func Text(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// Encoded returns the JSON of a value that is made of strings and of JSON that has been
// read before.
func Encoded(v any) json.RawMessage {
	b, err := plainjson.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

// Sample returns a JSON value that lets who sent it recognise it: a short one itself, the
// beginning of a longer one as a string.
func Sample(raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) <= sampleLimit && json.Valid(raw) {
		return raw
	}
	text := string(bytes.ToValidUTF8(raw, []byte("\ufffd")))
	if s, ok := Text(raw); ok {
		text = s
	}
	return Encoded(Cut(text, sampleLimit))
}

// Cut returns the first n characters of s, with an ellipsis if that is not all.
func Cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
