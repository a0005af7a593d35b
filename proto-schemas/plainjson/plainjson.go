// Package plainjson encodes JSON as encoding/json does, but without the escapes of <, > and
// &. Only HTML needs these, and they would make a text longer each time that it becomes part
// of another.
package plainjson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Marshal returns v as JSON on one line. It fails as json.Marshal does.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
