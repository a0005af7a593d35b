package event

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Proof is the signature of a gateway over a person's command, with the fields of the command that the signature covers
// besides the tenant. It lets any reader of an event verify later which person asked for it.
type Proof struct {
	Service   string          `json:"service"`
	Verb      string          `json:"verb"`
	Key       string          `json:"key"`
	Member    string          `json:"member,omitempty"`
	Principal string          `json:"principal,omitempty"`
	Operator  bool            `json:"operator,omitempty"` // the principal has the role operator
	CommandID string          `json:"command_id"`
	Request   string          `json:"request,omitempty"`
	Time      time.Time       `json:"time"`
	Data      json.RawMessage `json:"data,omitempty"`   // of the command; absent if it is large
	SHA256    string          `json:"sha256,omitempty"` // without Data: its digest in hex
	Signature string          `json:"signature"`        // Ed25519, in base64
}

// Short returns the proof with the digest of its data instead of the data.
func (p *Proof) Short() *Proof {
	if p == nil || len(p.Data) == 0 {
		return p
	}
	out, sum := *p, sha256.Sum256(p.Data)
	out.Data, out.SHA256 = nil, hex.EncodeToString(sum[:])
	return &out
}
