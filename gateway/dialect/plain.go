package dialect

import (
	"bytes"
	"encoding/json"
)

// sayings are the members of an object in which agents and clients put what they say
// to people, the best first.
var sayings = []string{"text", "message", "content", "question", "prompt", "title", "description", "result", "answer"}

// Plain returns what a JSON value of an agent or a client says to people: a string as
// it is, of an object the text that it holds, and of anything else its JSON. Nothing
// and null are empty.
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
		for _, name := range sayings {
			if json.Unmarshal(m[name], &s) == nil && s != "" {
				return s
			}
		}
	}
	return string(bytes.ToValidUTF8(raw, []byte("\ufffd")))
}
