package eventdata

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/waggle-dev/waggle/proto-schemas/event"
)

// maxRelays bounds the events within events that ForPeople looks into: more than the nesting of teams.
const maxRelays = 16

// ForPeople returns the event without what a model's provider wants back (event.PassBack), also in an event that it
// relays. It returns all other events unchanged, at the cost of a look at their type.
func ForPeople(e event.Event) event.Event {
	if data, changed := withheld(e.Type, e.Data, 0); changed {
		e.Data = data
	}
	return e
}

// RawForPeople is ForPeople for the stored form of an event of the type.
func RawForPeople(kind event.Type, raw []byte) []byte {
	if kind != event.ReasoningCompleted && !relays(kind, raw) {
		return raw
	}
	raw, _ = edit(raw, "data", func(data []byte) []byte {
		data, _ = withheld(kind, data, 0)
		return data
	})
	return raw
}

// Marks of relayed events that have something withheld.
var (
	passBack  = []byte("pass_back")
	reasoning = []byte(event.ReasoningCompleted)
)

// withheld returns the data of an event of the type without its pass_back, and whether that differs.
func withheld(kind event.Type, data []byte, depth int) (out []byte, changed bool) {
	if kind == event.ReasoningCompleted {
		return edit(data, string(passBack), func([]byte) []byte { return nil })
	}
	if !relays(kind, data) {
		return data, false
	}
	member := "event"
	if kind == event.TeamSubTeamEvent {
		member = "sub_team_event"
	}
	return edit(data, member, func(raw []byte) []byte { return relay(raw, depth+1) })
}

// relays reports whether an event of the type may relay something that is withheld.
func relays(kind event.Type, data []byte) bool {
	return (kind == event.TeamMemberEvent || kind == event.TeamSubTeamEvent) && bytes.Contains(data, reasoning) && bytes.Contains(data, passBack)
}

// relay returns a relayed event without what is withheld, and nothing of one that cannot be read.
func relay(raw []byte, depth int) []byte {
	var head struct {
		Type event.Type `json:"type"`
	}
	if depth > maxRelays || json.Unmarshal(raw, &head, stored) != nil {
		return nil
	}
	raw, _ = edit(raw, "data", func(data []byte) []byte {
		data, _ = withheld(head.Type, data, depth)
		return data
	})
	return raw
}

// edit returns a JSON object with another value of the member, or without the member if that is nil. found says whether
// the object differs. Data that cannot be read as an object gives the empty one: nothing of it is shown.
func edit(object []byte, member string, value func(old []byte) []byte) (out []byte, found bool) {
	in := jsontext.NewDecoder(bytes.NewReader(object), stored)
	if t, err := in.ReadToken(); err != nil || t.Kind() != '{' {
		return []byte("{}"), true
	}
	out = append(make([]byte, 0, len(object)), '{')
	for in.PeekKind() == '"' {
		name, err := in.ReadToken()
		if err != nil {
			return []byte("{}"), true
		}
		called := name.String()
		raw, err := in.ReadValue()
		if err != nil {
			return []byte("{}"), true
		}
		if called == member {
			found = true
			if raw = value(raw); raw == nil {
				continue
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, called) // a name that was read can be written
		out = append(append(out, ':'), raw...)
	}
	if t, err := in.ReadToken(); err != nil || t.Kind() != '}' {
		return []byte("{}"), true
	}
	if !found {
		return object, false
	}
	return append(out, '}'), true
}
