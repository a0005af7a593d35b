package asp

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/dialect"
	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/asp"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
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

// object is a JSON object of a frame.
type object = strict.Object

// rest returns what an object has besides the named members, as JSON; nil if nothing.
func rest(o object, known ...string) json.RawMessage {
	more := o.Rest(known...)
	if more == nil {
		return nil
	}
	return strict.Encoded(more)
}

// frame is a message that is being read.
type frame struct {
	strict.Reader
	in           Inbound
	top, content object
	kind, id     string             // type and id as they were sent
	words        command.Vocabulary // of statuses, if the frame gives it away
	quiet        bool               // its sender is not told that it has no effect
	named        string             // request, once it was asked for
	placed       *Placement         // it names no task: which one it is given to
}

// text reads a string of low to high characters, empty if it is absent.
func (f *frame) text(o object, name string, low, high int) string {
	raw := o.Get(name)
	if raw == nil {
		return ""
	}
	s, ok := strict.Text(raw)
	if n := utf8.RuneCountInString(s); !ok || n < low || n > high {
		f.Wrong(o.At(name), fmt.Sprintf("a string of %d to %d characters", low, high), raw)
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
		f.Wrong(at[0].At(at[0].name), fmt.Sprintf("a string of 1 to %d characters", wire.MaxID), nil)
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
	raw := o.Get(name)
	if raw == nil {
		f.Wrong(o.At(name), "any JSON value except null", nil)
	}
	return raw
}

// list reads a list of names, nil if it is absent.
func (f *frame) list(o object, name string) []string {
	raw := o.Get(name)
	if raw == nil {
		return nil
	}
	list, ok := names(raw)
	if !ok {
		f.Wrong(o.At(name), fmt.Sprintf("a list of at most %d texts of 1 to %d characters", wire.MaxList, wire.MaxID), raw)
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
		s, ok := strict.Text(r)
		if n := utf8.RuneCountInString(s); !ok || n < 1 || n > wire.MaxID {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// wait reads a time in milliseconds, 0 if it is absent.
func (f *frame) wait(o object, name string) int64 {
	raw := o.Get(name)
	if raw == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n < 0 || n > wire.MaxWait {
		f.Wrong(o.At(name), fmt.Sprintf("a number of milliseconds from 0 to %d", wire.MaxWait), raw)
		return 0
	}
	return int64(n)
}

// flag reads true or false; an absent one is false.
func (f *frame) flag(o object, name string) bool {
	raw := o.Get(name)
	if raw != nil && string(raw) != "true" && string(raw) != "false" {
		f.Wrong(o.At(name), "true or false", raw)
	}
	return string(raw) == "true"
}

// status reads the status of a participant, empty if it is absent.
func (f *frame) status(o object, name string) string {
	raw := o.Get(name)
	if raw == nil {
		return ""
	}
	s, ok := strict.Text(raw)
	status, known := command.ParseStatus(s)
	if !ok || !known {
		f.Wrong(o.At(name), aStatus, raw)
	}
	f.words = cmp.Or(command.VocabularyOf(s), f.words)
	return status
}

// aStatus is what a status has to be.
const aStatus = "online, offline, busy, error, initializing, active, inactive or maintenance"

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

// stable returns an id that is the same whenever the sender repeats the frame, on whatever
// connection: what the frame makes is made once. A frame without an id is another one each
// time.
func (f *frame) stable(what string) string {
	if f.id == "" || f.in.Participant.ID == "" {
		return f.in.NewID()
	}
	parts := []string{what, f.in.Participant.Kind, f.in.Participant.ID, f.id}
	if f.in.Participant.Incarnation != "" {
		parts = append(parts, f.in.Participant.Incarnation)
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	h := hex.EncodeToString(sum[:16])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// request returns the name of what the frame asks for, empty if its sender cannot repeat
// it. A repeat has the same id, type and content, on whatever connection of the sender.
// The name carries the id of the frame as that of a command does.
func (f *frame) request() string {
	if f.id == "" || f.in.Participant.ID == "" || f.named != "" {
		return f.named
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %q %s", f.in.Participant.Kind, f.in.Participant.ID, f.kind, f.id, f.top.Get("content"))
	if task := f.top.Get("taskId"); task != nil {
		fmt.Fprintf(sum, " %s", task)
	}
	f.named = hex.EncodeToString(sum.Sum(nil)[:16])
	if !f.quiet {
		f.named = commandID(f.named, f.id)
	}
	return f.named
}

// requestOf returns the id of the frame that an id made by commandID carries, whatever
// stands before it, and after it after a dot; empty if it carries none.
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

// linked fills in what frames for one connection have and encodes the frame. An answer
// has an id that follows from what it answers.
func linked(at dialect.Link, f wire.Frame) []byte {
	f.Timestamp = wire.Stamp(at.Now)
	if f.ID == "" {
		f.ID = "re." + first(f.RequestID, at.ConnectionID+"."+f.Timestamp)
	}
	b, err := f.Encode()
	if err == nil {
		return b
	}
	f.Type, f.Content = wire.Error, trouble(fault.New(fault.Internal))
	if b, err = f.Encode(); err != nil {
		panic("asp: " + err.Error()) // A frame without raw members can always be encoded.
	}
	return b
}

// trouble tells of a fault.
func trouble(f *fault.Fault) wire.ErrorContent {
	c := wire.ErrorContent{Error: f.Public(), Code: string(f.Code), Field: f.Field}
	if f.Field != "" && f.Constraint != "" {
		c.Details = f.Field + ": " + f.Constraint
	}
	if json.Valid(f.Provided) {
		c.Provided = f.Provided
	}
	return c
}

// telling says when a frame that has no effect is answered by an error. The SDKs of agents
// and services end their process on one that they do not expect.
type telling int

const (
	// maxItems bounds a page of a list.
	maxItems = 1000
	// maxPlace bounds the place where a page begins: a name and an id in base64.
	maxPlace = 16 * wire.MaxID
)

// limit reads how many items of a list are wanted, 0 if it is absent.
func (f *frame) limit(o object, name string) int {
	raw := o.Get(name)
	if raw == nil {
		return 0
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < 1 || n > maxItems {
		f.Wrong(o.At(name), fmt.Sprintf("a whole number from 1 to %d", maxItems), raw)
		return 0
	}
	return n
}
