// Package seal signs the exported states of sessions, and checks on import that a state is
// unchanged and not too old. The form is that of MyAgent's clients:
//
//	{"state": {...}, "timestamp": <unix s>, "version": "1.0", "checksum": "...", "signature": "..."}
//
// checksum is the SHA-256 of the state's canonical JSON; signature is the HMAC-SHA256 of that JSON,
// the timestamp and the version joined by colons; both are in hex. A client may encode the document
// anew: white space, escapes and the order of members do not count.
package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/waggle-dev/waggle/internal/strictjson"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

const (
	// Version is that of the form of a signed state.
	Version = "1.0"
	// Valid is how long a signed state may be used: as long as a session lives after
	// its last event.
	Valid = 24 * time.Hour
	// maxSkew is how far the clocks of two installations may differ.
	maxSkew = 5 * time.Minute
	// MinKey is the shortest key in bytes: the length of the digest, below which the
	// key is what would be guessed (RFC 2104).
	MinKey = sha256.Size
)

// Keys sign and verify: the first signs, all verify, so that a key can be replaced
// without a break. It is safe for concurrent use.
type Keys [][]byte

// Signed is a signed state.
type Signed struct {
	State     json.RawMessage `json:"state"`
	Timestamp int64           `json:"timestamp"` // unix time in seconds
	Version   string          `json:"version"`
	Checksum  string          `json:"checksum"`
	Signature string          `json:"signature"`
}

// Check returns an error if one of the keys is too short.
func (k Keys) Check() error {
	for i, key := range k {
		if len(key) < MinKey {
			return fmt.Errorf("key %d for signed states has %d bytes, and needs at least %d", i+1, len(key), MinKey)
		}
	}
	return nil
}

// Seal signs a state, which must be JSON. It returns an error without a key.
func (k Keys) Seal(state []byte, now time.Time) (json.RawMessage, error) {
	if len(k) == 0 {
		return nil, errors.New("sign a state: the key is missing")
	}
	form, err := strictjson.Canonical(state)
	if err != nil {
		return nil, fmt.Errorf("sign a state: %w", err)
	}
	s := Signed{State: form, Timestamp: now.Unix(), Version: Version, Checksum: checksum(form)}
	s.Signature = s.mac(k[0], form)
	b, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("sign a state: %w", err)
	}
	return strictjson.Canonical(b)
}

// Open verifies a signed state and returns it in its canonical form, and when it was
// signed. The error is STATE_TAMPERED or STATE_EXPIRED, with the reason in its text.
func (k Keys) Open(signed []byte, now time.Time) (state []byte, at time.Time, err error) {
	var s Signed
	if err := strictjson.Decode(signed, &s); err != nil {
		return nil, at, tampered("It is not a signed state.").Wrap(err)
	}
	if s.State == nil || s.Checksum == "" || s.Signature == "" || s.Timestamp <= 0 {
		return nil, at, tampered("state, timestamp, checksum or signature is missing.")
	}
	form, err := strictjson.Canonical(s.State)
	if err != nil {
		return nil, at, tampered("Its state is not JSON.").Wrap(err)
	}
	switch {
	case s.Version != Version:
		return nil, at, tampered("Its version is not known.")
	case !hmac.Equal([]byte(checksum(form)), []byte(s.Checksum)):
		return nil, at, tampered("Its checksum does not fit.")
	case !k.signed(s, form):
		return nil, at, tampered("Its signature does not fit: it was changed, or signed with another key.")
	}
	at = time.Unix(s.Timestamp, 0).UTC()
	switch {
	case now.Sub(at) > Valid:
		return nil, at, fault.Newf(fault.StateExpired, "The signed state was exported at %s and was valid for %d hours. Export a new one, or create a new session.", at.Format(time.RFC3339), int(Valid.Hours()))
	case at.Sub(now) > maxSkew:
		return nil, at, tampered("It is of the future: compare the clocks of the servers.")
	}
	return form, at, nil
}

// signed tries every key, whichever fits, so that the time says nothing.
func (k Keys) signed(s Signed, form []byte) bool {
	ok := false
	for _, key := range k {
		ok = hmac.Equal([]byte(s.Signature), []byte(s.mac(key, form))) || ok
	}
	return ok
}

func (s Signed) mac(key, form []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(form)
	h.Write([]byte(":" + strconv.FormatInt(s.Timestamp, 10) + ":" + s.Version))
	return hex.EncodeToString(h.Sum(nil))
}

// ownLimits are for documents that we made ourselves: a hundred tasks that name each
// other are 10,000 values.
var ownLimits = strictjson.Limits{Depth: strictjson.Default.Depth, Tokens: 1_000_000, NumberDigits: strictjson.Default.NumberDigits}

// Hash returns the checksum of a JSON document of ours: the same for every way to
// write it.
func Hash(doc []byte) (string, error) {
	form, err := ownLimits.Canonical(doc)
	if err != nil {
		return "", fmt.Errorf("hash a state: %w", err)
	}
	return checksum(form), nil
}

func checksum(form []byte) string {
	sum := sha256.Sum256(form)
	return hex.EncodeToString(sum[:])
}

func tampered(reason string) *fault.Fault {
	return fault.Newf(fault.StateTampered, "The signed state cannot be used. %s Use one that this installation exported.", reason)
}
