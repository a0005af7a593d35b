package fold

import (
	"encoding/json"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/waggle-dev/waggle/gateway/agui/fold/input"
	"github.com/waggle-dev/waggle/proto-schemas/event"
	"github.com/waggle-dev/waggle/proto-schemas/plainjson"
)

// timeForm is how times are written: RFC 3339 with milliseconds.
const timeForm = "2006-01-02T15:04:05.000Z07:00"

func stamp(at time.Time) string { return at.UTC().Format(timeForm) }

// maxName bounds the names of steps and subagents, in bytes.
const maxName = 128

// cutName bounds the name of a step or a subagent.
func cutName(name string) string {
	if len(name) <= maxName {
		return name
	}
	name = name[:maxName]
	for !utf8.ValidString(name) {
		name = name[:len(name)-1]
	}
	return name
}

// quote returns a text as JSON.
func quote(text string) json.RawMessage {
	raw, _ := plainjson.Marshal(text) //nolint:errchkjson // a string
	return raw
}

// raw returns a value as JSON.
func raw(v any) json.RawMessage {
	out, _ := plainjson.Marshal(v) //nolint:errchkjson // maps and structs of strings and numbers
	return out
}

// members returns an object with the members that have a value, given as pairs of name and value.
func members(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, named := pairs[i].(string)
		if v := reflect.ValueOf(pairs[i+1]); named && v.IsValid() && !v.IsZero() {
			out[name] = pairs[i+1]
		}
	}
	return out
}

func first(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// runIDOf is the id of the first stretch of the run that answers a message.
func runIDOf(d event.MessageReceivedData) string {
	return first(input.ExtraOf(d.Extra).RunID, d.MessageID)
}
