package myagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// sampleLimit bounds how much of a wrong value is given back, in characters: enough to
// recognise it.
const sampleLimit = 40

// Forms of strings.
var (
	idForm       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	positionForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,18})(\.(0|[1-9][0-9]{0,18}))?$`)
)

// Rules in words: what a value has to be.
const (
	anObject   = "an object"
	aBoolean   = "true or false"
	anID       = "1 to 128 of the characters A-Z a-z 0-9 _ -"
	anEventID  = "an event_id of this server"
	aTask      = "a task"
	aQuestion  = "a text, or an object with a question"
	aPosition  = "a position: last_seq or last_event_id"
	aSessionID = "the id of a session, or a signed_state"
)

// object is a JSON object of a frame. A map keeps the names of its members exact, which
// decoding into a struct would not. The zero object has no members.
type object struct {
	path    string // where it is in the frame
	members map[string]json.RawMessage
}

// get returns a member, nil if it is absent or null.
func (o object) get(name string) json.RawMessage {
	if raw := o.members[name]; string(raw) != "null" {
		return raw
	}
	return nil
}

// at returns the path of a member.
func (o object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

// rest returns what the object has besides the named members and null ones, nil if that
// is nothing.
func (o object) rest(known ...string) map[string]json.RawMessage {
	var more map[string]json.RawMessage
	for name, raw := range o.members {
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

// form reads the members of a frame. The first one that is not as it has to be is its
// fault; what is read after that does not count.
type form struct{ fault *fault.Fault }

// err returns the fault, if there is one.
func (f *form) err() error {
	if f.fault == nil {
		return nil
	}
	return f.fault
}

// wrong notes that a field is not as the rule says.
func (f *form) wrong(field, rule string, raw []byte) {
	if f.fault != nil {
		return
	}
	subject := field
	if subject == "" {
		subject = "A message"
	}
	if raw == nil {
		f.fault = fault.Newf(fault.InvalidField, "%s is missing: it has to be %s. Add it and send the message again.", subject, rule).At(field).Unlike(rule, nil)
		return
	}
	f.fault = fault.Newf(fault.InvalidField, "%s has to be %s. Correct it and send the message again.", subject, rule).At(field).Unlike(rule, sample(raw))
}

// object reads a member that is an object. An absent one has no members.
func (f *form) object(o object, name string) object {
	raw := o.get(name)
	inner := object{path: o.at(name)}
	if raw == nil {
		return inner
	}
	var ok bool
	if inner.members, ok = members(raw); !ok {
		f.wrong(inner.path, anObject, raw)
	}
	return inner
}

// text reads a string of at most limit characters, nil if it is absent.
func (f *form) text(o object, name string, limit int) *string {
	raw := o.get(name)
	if raw == nil {
		return nil
	}
	s, ok := str(raw)
	if !ok || utf8.RuneCountInString(s) > limit {
		f.wrong(o.at(name), atMost(limit), raw)
	}
	return &s
}

// question reads a text that says something.
func (f *form) question(o object, name string) string {
	raw := o.get(name)
	s, ok := str(raw)
	if !ok || blank(s) || utf8.RuneCountInString(s) > wire.MaxContent {
		f.wrong(o.at(name), fmt.Sprintf("a text of 1 to %d characters, not only white space", wire.MaxContent), raw)
	}
	return s
}

// id reads an id, empty if it is absent.
func (f *form) id(o object, name string) string {
	raw := o.get(name)
	if raw == nil {
		return ""
	}
	s, ok := str(raw)
	if !ok || !idForm.MatchString(s) {
		f.wrong(o.at(name), anID, raw)
	}
	return s
}

// needID reads an id that must be there.
func (f *form) needID(o object, name string) string {
	if o.get(name) == nil {
		f.wrong(o.at(name), anID, nil)
	}
	return f.id(o, name)
}

// step reads the id of a question, which may be one that an agent of the swarm has given.
func (f *form) step(o object) string {
	raw := o.get("step_id")
	s, ok := str(raw)
	if n := utf8.RuneCountInString(s); !ok || n < 1 || n > wire.MaxID {
		f.wrong(o.at("step_id"), fmt.Sprintf("a text of 1 to %d characters", wire.MaxID), raw)
	}
	return s
}

// name reads a text that is not empty, which names something in the client's own words.
func (f *form) name(o object, name string) string {
	raw := o.get(name)
	if raw == nil {
		return ""
	}
	s, ok := str(raw)
	if !ok || s == "" {
		f.wrong(o.at(name), "a text that is not empty", raw)
	}
	return s
}

// taskID reads the id of a task, which may be written as an integer.
func (f *form) taskID(raw json.RawMessage, field string) string {
	if s, ok := str(raw); ok && idForm.MatchString(s) {
		return s
	}
	if n, ok := whole(raw); ok && n >= 0 && n <= wire.MaxSeq {
		return strconv.FormatInt(n, 10)
	}
	f.wrong(field, anID, raw)
	return ""
}

// integer reads an integer from low to high, nil if it is absent.
func (f *form) integer(o object, name string, low, high int64) *int64 {
	raw := o.get(name)
	if raw == nil {
		return nil
	}
	n, ok := whole(raw)
	if !ok || n < low || n > high {
		f.wrong(o.at(name), fmt.Sprintf("an integer from %d to %d", low, high), raw)
	}
	return &n
}

// boolean reads true or false, nil if it is absent.
func (f *form) boolean(o object, name string) *bool {
	raw := o.get(name)
	switch string(raw) {
	case "":
		return nil
	case "true", "false":
	default:
		f.wrong(o.at(name), aBoolean, raw)
	}
	b := string(raw) == "true"
	return &b
}

// oneOf reads one of some strings, empty if it is absent.
func (f *form) oneOf(o object, name string, choices ...string) string {
	raw := o.get(name)
	if raw == nil {
		return ""
	}
	s, ok := str(raw)
	if !ok || !slices.Contains(choices, s) {
		f.wrong(o.at(name), "one of "+strings.Join(choices, ", "), raw)
	}
	return s
}

// members returns the members of a JSON object, and false if raw is anything else.
func members(raw []byte) (map[string]json.RawMessage, bool) {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	var m map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &m) != nil {
		return nil, false
	}
	return m, true
}

// str returns the JSON string raw, and false if raw is anything else.
func str(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// whole returns the integer raw, however it is written (3, 3.0, 3e0), and false if raw
// is anything else or has more than 18 digits.
func whole(raw json.RawMessage) (int64, bool) {
	s, minus := strings.CutPrefix(string(raw), "-")
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	mantissa, power, scaled := strings.Cut(strings.ToLower(s), "e")
	head, tail, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(head+tail, "0")
	if digits == "" {
		return 0, true
	}
	exponent := 0
	if scaled {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil {
			return 0, false
		}
	}
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant) - len(tail)
	if exponent < 0 || exponent > 18 || len(significant)+exponent > 18 {
		return 0, false
	}
	n, err := strconv.ParseInt(significant+strings.Repeat("0", exponent), 10, 64)
	if minus {
		n = -n
	}
	return n, err == nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func atMost(limit int) string { return fmt.Sprintf("a text of at most %d characters", limit) }

// sample returns a JSON value that lets a client recognise what it sent: a short one
// itself, the beginning of a longer one as a string.
func sample(raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) <= sampleLimit && json.Valid(raw) {
		return raw
	}
	text := string(bytes.ToValidUTF8(raw, []byte("\ufffd")))
	if s, ok := str(raw); ok {
		text = s
	}
	b, err := json.Marshal(cut(text, sampleLimit))
	if err != nil {
		return nil
	}
	return b
}

// cut returns the first n characters of s, with an ellipsis if that is not all.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
