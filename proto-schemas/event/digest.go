package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// CallDigest binds a decision to the contents of a call: the hash of the tool's name and its arguments in canonical form.
func CallDigest(tool string, arguments json.RawMessage) string {
	sum := sha256.Sum256(append([]byte(tool+"\x00"), Canonical(arguments)...))
	return hex.EncodeToString(sum[:])
}

// Canonical returns the one form of a JSON value (sorted members, no spaces), and invalid JSON as it is.
func Canonical(raw json.RawMessage) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // two numbers that differ are two values, however many digits they have
	if d.Decode(&v) != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}

// CallChanged begins the result of a call whose arguments a person has changed, as a model sees it: without it, models make the
// first call again.
const CallChanged = "[A person has changed the arguments of this call, and approved it as it stands here. Do not repeat the earlier one.]\n"
