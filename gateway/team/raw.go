package team

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/waggle-dev/waggle/gateway/internal/strict"
	wire "github.com/waggle-dev/waggle/proto-schemas/team"
)

// object returns raw as a JSON object, which is all that the protocol allows for
// arguments. Nothing is {}, and a value of another kind becomes its member "value".
func object(raw json.RawMessage) json.RawMessage {
	raw = bytes.ToValidUTF8(bytes.TrimSpace(raw), []byte("\ufffd"))
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return json.RawMessage("{}")
	case raw[0] == '{':
		return raw
	}
	return fmt.Appendf(nil, `{"value":%s}`, raw)
}

// text returns a text as JSON.
func text(s string) json.RawMessage {
	b, err := wire.Encode(s)
	if err != nil {
		panic("team: " + err.Error()) // A text can always be encoded.
	}
	return b
}

// textAt returns a member of a JSON object that is a text.
func textAt(raw json.RawMessage, name string) (string, bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return "", false
	}
	return strict.Text(m[name])
}
