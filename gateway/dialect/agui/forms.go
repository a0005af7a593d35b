package agui

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

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

// Extra is what a client of AG-UI says about a thread or a message, and what is kept with it.
type Extra struct {
	ThreadID    string          `json:"thread_id,omitempty"`
	RunID       string          `json:"run_id,omitempty"` // as the client wrote it
	MessageID   string          `json:"message_id,omitempty"`
	ParentRunID string          `json:"parent_run_id,omitempty"`
	Forwarded   json.RawMessage `json:"forwarded,omitempty"`
	State       json.RawMessage `json:"state,omitempty"`
}

// extraOf returns the part of extra that is about AG-UI.
func extraOf(extra json.RawMessage) Extra {
	var d struct {
		AGUI Extra `json:"agui"`
	}
	_ = json.Unmarshal(extra, &d) // not of this protocol
	return d.AGUI
}

// runIDOf is the id of the first stretch of the run that answers a message.
func runIDOf(d event.MessageReceivedData) string { return first(extraOf(d.Extra).RunID, d.MessageID) }

func web(u string) bool {
	return strings.HasPrefix(u, "https://") || strings.HasPrefix(u, "http://")
}
