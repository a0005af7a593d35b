package snapshot

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// canonical returns a JSON value in its canonical form (RFC 8785), as a browser reads it: of two members of one name it has the
// later one, and null for a number that is too large for a double. It is nil for an absent or invalid value.
func canonical(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	text, err := json.Marshal(representable(v))
	if err != nil {
		return nil
	}
	if out := jsontext.Value(text); out.Canonicalize() == nil {
		return json.RawMessage(out)
	}
	return nil
}

// representable puts null in the place of each number that is too large for a double.
func representable(v any) any {
	switch x := v.(type) {
	case json.Number:
		if f, err := x.Float64(); err != nil && f != 0 {
			return nil
		}
	case []any:
		for i, one := range x {
			x[i] = representable(one)
		}
	case map[string]any:
		for name, one := range x {
			x[name] = representable(one)
		}
	}
	return v
}

// textOf returns a JSON string as its text, any other value as canonical JSON, and nothing for none.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s // also of null
	}
	return string(canonical(raw))
}
