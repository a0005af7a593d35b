package narrate

import (
	"bytes"
	"encoding/json"
)

// textMembers are the members of an object in which agents and clients put text for
// people, the best first.
var textMembers = []string{"text", "message", "content", "question", "prompt", "title", "description", "result", "answer"}

// Plain returns the text for people in a JSON value of an agent or a client: a string
// itself, the text member of an object, and the JSON of any other value. It returns
// nothing for an empty value and for null.
func Plain(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var m map[string]json.RawMessage
	if raw[0] == '{' && json.Unmarshal(raw, &m) == nil {
		for _, name := range textMembers {
			if json.Unmarshal(m[name], &s) == nil && s != "" {
				return s
			}
		}
	}
	return string(bytes.ToValidUTF8(raw, []byte("\ufffd")))
}
