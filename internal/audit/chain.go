package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/waggle-dev/waggle/proto-schemas/audit"
)

// chain links the records of one writer: each holds its number and the hash of the one before. Every writer begins a
// chain of its own, so that concurrent writers and restarts need no agreement.
type chain struct {
	id     string
	number int64
	hash   string // of the newest record
	after  uint64 // the newest record of the log at the beginning
}

func newChain(after uint64) *chain { return &chain{id: rand.Text(), after: after} }

// link makes the record the next of the chain, and returns its stored form.
func (c *chain) link(r audit.Record) ([]byte, int64, error) {
	r.Chain, r.Number, r.Previous = c.id, c.number+1, c.hash
	if r.Number == 1 {
		r.After = c.after
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, 0, err
	}
	c.number, c.hash = r.Number, hashOf(data)
	return data, r.Number, nil
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
