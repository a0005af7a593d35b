package index

import (
	"encoding/json"

	"github.com/bits-and-blooms/bitset"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// maxCovered bounds the messages of a shard beyond the index' position that are noted, a bit each: 512 KiB. Busy shards have some
// hundred thousand between two catch-ups. A catch-up reads the headers of those beyond the bound.
const maxCovered = 4 << 20

// positions are the sequences of the shards up to which the index is complete: it knows each log whose last event lies
// there.
type positions struct {
	Shards [subject.MostPartitions]uint64 `json:"shards"`
}

// MarshalJSON omits the shards after the last one with a message.
func (p positions) MarshalJSON() ([]byte, error) {
	n := len(p.Shards)
	for n > 0 && p.Shards[n-1] == 0 {
		n--
	}
	return json.Marshal(map[string][]uint64{"shards": p.Shards[:n]})
}

// coverage knows which messages beyond the stored positions the summaries have taken in, so that a catch-up reads the headers of
// the others alone: of none, if all announcements arrived.
type coverage struct {
	base positions
	bits [subject.MostPartitions]bitset.BitSet // bit 0 is the message after the base
}

// begin forgets everything unless the stored positions are those of the last move: the index was lost, or another process wrote it.
func (c *coverage) begin(at positions) {
	if at == (positions{}) || at != c.base {
		*c = coverage{base: at}
	}
}

// add notes that the messages of the shard with these sequences are covered.
func (c *coverage) add(p subject.Partition, sequences []uint64) {
	for _, seq := range sequences {
		if base := c.base.Shards[p]; seq > base && seq-base <= maxCovered {
			c.bits[p].Set(uint(seq - base - 1))
		}
	}
}

// reach returns the last message of the unbroken run of covered ones that follows the base.
func (c *coverage) reach(p subject.Partition) uint64 {
	end, found := c.bits[p].NextClear(0)
	if !found {
		end = c.bits[p].Len()
	}
	return c.base.Shards[p] + uint64(end)
}

// move makes stored positions the base, and forgets what lies before them.
func (c *coverage) move(to positions) {
	for p := range c.bits {
		if from := c.base.Shards[p]; to.Shards[p] < from { // restored from an older backup
			c.bits[p].ClearAll()
		} else {
			c.bits[p].ShiftRight(uint(to.Shards[p] - from))
		}
		c.bits[p].Compact()
	}
	c.base = to
}
