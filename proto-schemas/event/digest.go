package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// CallDigest binds a decision to the contents of a call: the hash of the tool's name and its arguments in canonical form
// (sorted members, no spaces).
func CallDigest(tool string, arguments json.RawMessage) string {
	canonical := []byte(arguments)
	var v any
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber() // two numbers that differ are two calls, however many digits they have
	if d.Decode(&v) == nil {
		if b, err := json.Marshal(v); err == nil {
			canonical = b
		}
	}
	sum := sha256.Sum256(append([]byte(tool+"\x00"), canonical...))
	return hex.EncodeToString(sum[:])
}
