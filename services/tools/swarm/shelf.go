package swarm

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/waggle-dev/waggle/services/tools/schema"
)

// listing holds the members of one tenant, each version with its own number.
type listing struct {
	version uint64
	members []*member
}

// shelf holds the tools of one tenant's services. Its lock is held while schemas are compiled, which other tenants do not
// wait for.
type shelf struct {
	mu      sync.Mutex
	version uint64 // of the listing that view is made of
	view    *view
	known   map[string]*replica
	schemas map[[sha256.Size]byte]compiled
}

type compiled struct {
	schema *schema.Schema
	err    error
}

// compile compiles a schema unless before holds it.
func (s *shelf) compile(raw json.RawMessage, before map[[sha256.Size]byte]compiled) (*schema.Schema, error) {
	sum := sha256.Sum256(raw)
	c, ok := s.schemas[sum]
	if !ok {
		c, ok = before[sum]
	}
	if !ok {
		c.schema, c.err = schema.Compile(raw)
	}
	s.schemas[sum] = c
	return c.schema, c.err
}

// keep takes over the schemas of an unchanged replica.
func (s *shelf) keep(r *replica, before map[[sha256.Size]byte]compiled) {
	for _, t := range r.participant.Tools {
		for _, raw := range []json.RawMessage{t.InputSchema, t.OutputSchema} {
			sum := sha256.Sum256(raw)
			if c, ok := before[sum]; ok {
				s.schemas[sum] = c
			}
		}
	}
}
