// Package marks remembers the ids that occurred in a log.
package marks

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
)

// Max bounds the ids that a set remembers: those of the last 16,384 messages and effects of commands. A person who
// sends a message each minute needs eleven days for that many.
const Max = 1 << 14

// Set is a set of ids, which forgets the oldest ones. It keeps 64 bits of the hash of each: one of 10^15 new ids is taken
// for a known one. The zero value is empty. It is not safe for concurrent use.
type Set struct {
	list []uint64 // oldest first
	set  map[uint64]bool
}

func markOf(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.BigEndian.Uint64(sum[:])
}

// Has reports whether the id was added, and is not forgotten.
func (s *Set) Has(id string) bool { return s.set[markOf(id)] }

// Add adds an id, and forgets the oldest one beyond Max.
func (s *Set) Add(id string) { s.put(markOf(id)) }

func (s *Set) put(mark uint64) {
	if s.set[mark] {
		return
	}
	if s.set == nil {
		s.set = map[uint64]bool{}
	}
	s.set[mark] = true
	s.list = append(s.list, mark)
	if len(s.list) > Max {
		delete(s.set, s.list[0])
		s.list = s.list[1:]
	}
}

// Encode returns the set as bytes, eight for each id.
func (s *Set) Encode() []byte {
	var out []byte
	for _, mark := range s.list {
		out = binary.BigEndian.AppendUint64(out, mark)
	}
	return out
}

// Decode returns the set that Encode has encoded.
func Decode(raw []byte) (s Set, err error) {
	if len(raw)%8 != 0 {
		return s, errors.New("its ids are cut")
	}
	for ; len(raw) > 0; raw = raw[8:] {
		s.put(binary.BigEndian.Uint64(raw))
	}
	return s, nil
}
