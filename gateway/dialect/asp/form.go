package asp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/dialect"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// sampleLimit bounds how much of a wrong value is given back, in characters: enough
	// to recognise it.
	sampleLimit = 40
	// plainID is how long the id of a frame may be to be part of a command's id as it is.
	plainID = 64
	// codedID is the same for one that has to be encoded. With a UUID and a mark before
	// it the whole has at most 128 characters, like every id.
	codedID = 60
)

// Marks before the id of a frame in the id of a command. No id that is made by a
// gateway has one.
const (
	plainMark = "_r_"
	codedMark = "_x_"
)

const anObject = "an object"

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

// rest returns what the object has besides the named members, as JSON; nil if nothing.
func (o object) rest(known ...string) json.RawMessage {
	more := map[string]json.RawMessage{}
	for name, raw := range o.members {
		if !slices.Contains(known, name) && string(raw) != "null" {
			more[name] = raw
		}
	}
	if len(more) == 0 {
		return nil
	}
	return encoded(more)
}

// frame is a message that is being read. The first member that is not as it has to be
// is its fault; what is read after that does not count.
type frame struct {
	in           dialect.PeerInbound
	top, content object
	kind, id     string // type and id as they were sent
	fault        *fault.Fault
}

// err returns the fault, if there is one.
func (f *frame) err() error {
	if f.fault == nil {
		return nil
	}
	return f.fault
}

// wrong notes that a field is not as the rule says.
func (f *frame) wrong(field, rule string, raw []byte) {
	if f.fault != nil {
		return
	}
	what := first(field, "A message")
	if raw == nil {
		f.fault = fault.Newf(fault.InvalidField, "%s is missing: it has to be %s. Add it and send the message again.", what, rule).At(field).Unlike(rule, nil)
		return
	}
	f.fault = fault.Newf(fault.InvalidField, "%s has to be %s. Correct it and send the message again.", what, rule).At(field).Unlike(rule, sample(raw))
}

// object reads a member that is an object. An absent one has no members.
func (f *frame) object(o object, name string) object {
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

// text reads a string of low to high characters, empty if it is absent.
func (f *frame) text(o object, name string, low, high int) string {
	raw := o.get(name)
	if raw == nil {
		return ""
	}
	s, ok := str(raw)
	if n := utf8.RuneCountInString(s); !ok || n < low || n > high {
		f.wrong(o.at(name), fmt.Sprintf("a text of %d to %d characters", low, high), raw)
	}
	return s
}

// name reads an id or a name, empty if it is absent.
func (f *frame) name(o object, name string) string { return f.text(o, name, 1, wire.MaxID) }

// word reads a type, a level or the like, empty if it is absent.
func (f *frame) word(o object, name string) string { return f.text(o, name, 0, wire.MaxWord) }

// needName reads an id or a name that may be at several places, the first of which
// counts and one of which must be there.
func (f *frame) needName(at ...place) string {
	found := ""
	for _, p := range at {
		found = first(found, f.name(p.object, p.name))
	}
	if found == "" {
		f.wrong(at[0].at(at[0].name), fmt.Sprintf("a text of 1 to %d characters", wire.MaxID), nil)
	}
	return found
}

// place is where a member may be.
type place struct {
	object
	name string
}

// here returns places of the content.
func (f *frame) here(names ...string) []place {
	out := make([]place, 0, len(names))
	for _, n := range names {
		out = append(out, place{f.content, n})
	}
	return out
}

// need reads a member that may be any JSON but null.
func (f *frame) need(o object, name string) json.RawMessage {
	raw := o.get(name)
	if raw == nil {
		f.wrong(o.at(name), "any JSON but null", nil)
	}
	return raw
}

// words reads a list of names, nil if it is absent.
func (f *frame) words(o object, name string) []string {
	raw := o.get(name)
	if raw == nil {
		return nil
	}
	list, ok := names(raw)
	if !ok {
		f.wrong(o.at(name), fmt.Sprintf("a list of at most %d texts of 1 to %d characters", wire.MaxList, wire.MaxID), raw)
	}
	return list
}

// names returns the list of names raw, and false if raw is anything else.
func names(raw json.RawMessage) ([]string, bool) {
	var all []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &all) != nil || len(all) > wire.MaxList {
		return nil, false
	}
	out := make([]string, 0, len(all))
	for _, r := range all {
		s, ok := str(r)
		if n := utf8.RuneCountInString(s); !ok || n < 1 || n > wire.MaxID {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// wait reads a time in milliseconds, 0 if it is absent.
func (f *frame) wait(o object, name string) int64 {
	raw := o.get(name)
	if raw == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n < 0 || n > wire.MaxWait {
		f.wrong(o.at(name), fmt.Sprintf("a number of milliseconds from 0 to %d", wire.MaxWait), raw)
		return 0
	}
	return int64(n)
}

// flag reads true or false; an absent one is false.
func (f *frame) flag(o object, name string) bool {
	raw := o.get(name)
	if raw != nil && string(raw) != "true" && string(raw) != "false" {
		f.wrong(o.at(name), "true or false", raw)
	}
	return string(raw) == "true"
}

// status reads the status of a peer, empty if it is absent.
func (f *frame) status(o object, name string) string {
	raw := o.get(name)
	if raw == nil {
		return ""
	}
	s, ok := str(raw)
	status, known := statuses[s]
	if !ok || !known {
		f.wrong(o.at(name), "active, inactive, busy, error or maintenance", raw)
	}
	return status
}

// statuses are the statuses of peers, with the words of the SDKs for two of them.
var statuses = map[string]string{
	command.StatusActive: command.StatusActive, command.StatusInactive: command.StatusInactive, command.StatusBusy: command.StatusBusy,
	command.StatusError: command.StatusError, command.StatusMaintenance: command.StatusMaintenance,
	"online": command.StatusActive, "offline": command.StatusInactive,
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

// encoded returns a value that is made of strings and of JSON that has been read before.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// sample returns a JSON value that lets a peer recognise what it sent: a short one
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
	return encoded(cut(text, sampleLimit))
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

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// commandID returns a fresh id that carries the id of a frame, unless that is too long:
// what is said about a command names the command only, and has to find its frame.
func commandID(fresh, frameID string) string {
	if _, err := id.ParseEntity(frameID); err == nil && len(frameID) <= plainID {
		return fresh + plainMark + frameID
	}
	if frameID == "" || len(frameID) > codedID {
		return fresh
	}
	return fresh + codedMark + base64.RawURLEncoding.EncodeToString([]byte(frameID))
}

// requestOf returns the id of the frame that an id made by commandID carries, whatever
// stands before it, and after it behind a dot; empty if it carries none.
func requestOf(s string) string {
	plain, coded := strings.Index(s, plainMark), strings.Index(s, codedMark)
	if plain >= 0 && (coded < 0 || plain < coded) {
		rest, _, _ := strings.Cut(s[plain+len(plainMark):], ".")
		return rest
	}
	if coded < 0 {
		return ""
	}
	rest, _, _ := strings.Cut(s[coded+len(codedMark):], ".")
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil {
		return ""
	}
	return string(b)
}
