package myagent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/myagent"
)

// Forms of strings.
var (
	idForm      = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	eventIDForm = regexp.MustCompile(`^(?:([A-Za-z0-9_-]{1,128})-)?((?:0|[1-9][0-9]{0,18})(?:\.(?:0|[1-9][0-9]{0,18}))?)$`)
)

// Rules in words: what a value has to be.
const (
	aBoolean   = "true or false"
	anID       = "1 to 128 of the characters A-Z a-z 0-9 _ -"
	anEventID  = "an event_id of this server"
	aTask      = "a task"
	aQuestion  = "a string, or an object with a question"
	aPosition  = "a position: last_seq or last_event_id"
	aSessionID = "the id of a session, or a signed_state"
)

// object is a JSON object of a frame.
type object = strict.Object

// form reads the members of a frame.
type form struct{ strict.Reader }

// text reads a string of at most limit characters, nil if it is absent.
func (f *form) text(o object, name string, limit int) *string {
	raw := o.Get(name)
	if raw == nil {
		return nil
	}
	s, ok := strict.Text(raw)
	if !ok || utf8.RuneCountInString(s) > limit {
		f.Wrong(o.At(name), atMost(limit), raw)
	}
	return &s
}

// question reads a text that says something.
func (f *form) question(o object, name string) string {
	raw := o.Get(name)
	s, ok := strict.Text(raw)
	if !ok || blank(s) || utf8.RuneCountInString(s) > wire.MaxContent {
		f.Wrong(o.At(name), fmt.Sprintf("a string of 1 to %d characters, not only white space", wire.MaxContent), raw)
	}
	return s
}

// id reads an id, empty if it is absent.
func (f *form) id(o object, name string) string {
	raw := o.Get(name)
	if raw == nil {
		return ""
	}
	s, ok := strict.Text(raw)
	if !ok || !idForm.MatchString(s) {
		f.Wrong(o.At(name), anID, raw)
	}
	return s
}

// needID reads an id that must be there.
func (f *form) needID(o object, name string) string {
	if o.Get(name) == nil {
		f.Wrong(o.At(name), anID, nil)
	}
	return f.id(o, name)
}

// step reads the id of a question, which may be one that an agent of the swarm has given.
func (f *form) step(o object) string {
	raw := o.Get("step_id")
	s, ok := strict.Text(raw)
	if n := utf8.RuneCountInString(s); !ok || n < 1 || n > wire.MaxID {
		f.Wrong(o.At("step_id"), fmt.Sprintf("a string of 1 to %d characters", wire.MaxID), raw)
	}
	return s
}

// name reads a text that is not empty, which names something in the client's own words.
func (f *form) name(o object, name string) string {
	raw := o.Get(name)
	if raw == nil {
		return ""
	}
	s, ok := strict.Text(raw)
	if !ok || s == "" {
		f.Wrong(o.At(name), "a string that is not empty", raw)
	}
	return s
}

// taskID reads the id of a task, which may be written as an integer.
func (f *form) taskID(raw json.RawMessage, field string) string {
	if s, ok := strict.Text(raw); ok && idForm.MatchString(s) {
		return s
	}
	if n, ok := whole(raw); ok && n >= 0 && n <= wire.MaxSeq {
		return strconv.FormatInt(n, 10)
	}
	f.Wrong(field, anID, raw)
	return ""
}

// integer reads an integer from low to high, nil if it is absent.
func (f *form) integer(o object, name string, low, high int64) *int64 {
	raw := o.Get(name)
	if raw == nil {
		return nil
	}
	n, ok := whole(raw)
	if !ok || n < low || n > high {
		f.Wrong(o.At(name), fmt.Sprintf("an integer from %d to %d", low, high), raw)
	}
	return &n
}

// boolean reads true or false, nil if it is absent.
func (f *form) boolean(o object, name string) *bool {
	raw := o.Get(name)
	switch string(raw) {
	case "":
		return nil
	case "true", "false":
	default:
		f.Wrong(o.At(name), aBoolean, raw)
	}
	b := string(raw) == "true"
	return &b
}

// oneOf reads one of some strings, empty if it is absent.
func (f *form) oneOf(o object, name string, choices ...string) string {
	raw := o.Get(name)
	if raw == nil {
		return ""
	}
	s, ok := strict.Text(raw)
	if !ok || !slices.Contains(choices, s) {
		f.Wrong(o.At(name), "one of "+strings.Join(choices, ", "), raw)
	}
	return s
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

func atMost(limit int) string { return fmt.Sprintf("a string of at most %d characters", limit) }
