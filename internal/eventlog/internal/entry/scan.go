package entry

import (
	"strconv"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxScanned bounds the depth of data that scan reads itself.
const maxScanned = 64

// types are all types of events, so that a decoded event shares their strings.
var types = func() map[string]event.Type {
	all := make(map[string]event.Type)
	for _, info := range event.Catalogue {
		all[string(info.Type)] = info.Type
	}
	return all
}()

// scan reads the event of the log from the form that Encode gives it, in one pass and without a copy of its data. It
// returns false for every other form, valid or not, and has then perhaps set some members. The JSON decoder
// accepts all that scan accepts, with the same result.
func scan(raw []byte, log string, e *event.Event) bool {
	s := scanner{b: raw}
	if !s.skip(`{"specversion":"` + event.SpecVersion + `","id":`) {
		return false
	}
	e.SpecVersion = event.SpecVersion
	return s.head(log, e) && s.body(e) && s.next('}') && s.at == len(s.b)
}

// head reads the members that say which event it is.
func (s *scanner) head(log string, e *event.Event) bool {
	return s.origin(e) &&
		s.kind(e) &&
		s.skip(`,"subject":"`) && s.skip(log) && s.skip(`"`) && s.subject(log, e)
}

// body reads the other members.
func (s *scanner) body(e *event.Event) bool {
	return s.skip(`,"time":`) && s.time(e) &&
		s.skip(`,"sequence":`) && s.sequence(e) &&
		s.skip(`,"data":`) && s.data(e) &&
		s.option(`,"traceparent":`, &e.TraceParent) &&
		s.option(`,"request":`, &e.Request)
}

// scanner reads compact JSON.
type scanner struct {
	b  []byte
	at int
}

// skip passes the text.
func (s *scanner) skip(text string) bool {
	if len(s.b)-s.at < len(text) || string(s.b[s.at:s.at+len(text)]) != text {
		return false
	}
	s.at += len(text)
	return true
}

// next passes the byte.
func (s *scanner) next(c byte) bool {
	if s.at == len(s.b) || s.b[s.at] != c {
		return false
	}
	s.at++
	return true
}

// plain passes a string of ASCII without escapes and returns where its text begins and ends.
func (s *scanner) plain() (from, to int, ok bool) {
	if !s.next('"') {
		return 0, 0, false
	}
	for from = s.at; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; {
		case c == '"':
			s.at++
			return from, s.at - 1, true
		case c < ' ' || c == '\\' || c >= utf8.RuneSelf:
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// origin reads id and source, which share memory.
func (s *scanner) origin(e *event.Event) bool {
	from, mid, ok := s.plain()
	if !ok || !s.skip(`,"source":`) {
		return false
	}
	source, to, ok := s.plain()
	if !ok {
		return false
	}
	text := string(s.b[from:to])
	e.ID, e.Source = text[:mid-from], text[source-from:]
	return true
}

func (s *scanner) kind(e *event.Event) bool {
	if !s.skip(`,"type":`) {
		return false
	}
	from, to, ok := s.plain()
	if !ok {
		return false
	}
	if e.Type, ok = types[string(s.b[from:to])]; !ok {
		e.Type = event.Type(s.b[from:to])
	}
	return true
}

// subject sets the subject, which equals the log's name. A name that needs escapes has been compared in the wrong form.
func (s *scanner) subject(log string, e *event.Event) bool {
	e.Subject = log
	for i := range len(log) {
		if c := log[i]; c < ' ' || c == '\\' || c == '"' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// clock is the form of a time to the second.
const clock = "0000-00-00T00:00:00"

// time reads a time in UTC.
func (s *scanner) time(e *event.Event) bool {
	from, to, ok := s.plain()
	if !ok || to-from <= len(clock) || s.b[to-1] != 'Z' {
		return false
	}
	t := s.b[from:to]
	for i, c := range []byte(clock) {
		if c == '0' && (t[i] < '0' || t[i] > '9') || c != '0' && t[i] != c {
			return false
		}
	}
	if rest := t[len(clock):]; len(rest) > 1 && (rest[0] != '.' || len(rest) == 2) {
		return false
	}
	return e.Time.UnmarshalText(t) == nil
}

func (s *scanner) sequence(e *event.Event) bool {
	from := s.at
	if !s.number() {
		return false
	}
	n, err := strconv.ParseUint(string(s.b[from:s.at]), 10, 64)
	e.Sequence = n
	return err == nil
}

// data passes a value and has the event refer to it.
func (s *scanner) data(e *event.Event) bool {
	from := s.at
	if !s.value(0) {
		return false
	}
	e.Data = s.b[from:s.at:s.at]
	return true
}

// option reads a string that may be missing.
func (s *scanner) option(name string, text *string) bool {
	if !s.skip(name) {
		return true
	}
	from, to, ok := s.plain()
	*text = string(s.b[from:to])
	return ok
}

// value passes a value.
func (s *scanner) value(depth int) bool {
	if s.at == len(s.b) || depth > maxScanned {
		return false
	}
	switch s.b[s.at] {
	case '{':
		return s.members(depth)
	case '[':
		return s.elements(depth)
	case '"':
		return s.text()
	case 't':
		return s.skip("true")
	case 'f':
		return s.skip("false")
	case 'n':
		return s.skip("null")
	default:
		return s.number()
	}
}

func (s *scanner) members(depth int) bool {
	s.at++
	if s.next('}') {
		return true
	}
	for s.text() && s.next(':') && s.value(depth+1) {
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
	return false
}

func (s *scanner) elements(depth int) bool {
	s.at++
	if s.next(']') {
		return true
	}
	for s.value(depth + 1) {
		if s.next(']') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
	return false
}

// text passes a string.
func (s *scanner) text() bool {
	if !s.next('"') {
		return false
	}
	for s.at < len(s.b) {
		switch c := s.b[s.at]; {
		case c == '"':
			s.at++
			return true
		case c < ' ':
			return false
		case c == '\\':
			if !s.escape() {
				return false
			}
		default:
			s.at++
		}
	}
	return false
}

// escape passes an escape within a string.
func (s *scanner) escape() bool {
	s.at++
	if s.at == len(s.b) {
		return false
	}
	s.at++
	switch s.b[s.at-1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		for range 4 {
			if s.at == len(s.b) || !hex(s.b[s.at]) {
				return false
			}
			s.at++
		}
		return true
	}
	return false
}

func hex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// number passes a number.
func (s *scanner) number() bool {
	s.next('-')
	if !s.next('0') && !s.digits() {
		return false
	}
	if s.next('.') && !s.digits() {
		return false
	}
	if s.next('e') || s.next('E') {
		if !s.next('+') {
			s.next('-')
		}
		return s.digits()
	}
	return true
}

// digits passes one digit or more.
func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.b) && '0' <= s.b[s.at] && s.b[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}
