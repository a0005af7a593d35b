package command

import (
	"hash/fnv"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Owns reports whether the replica self is the one that is served first at the commands
// to the address's key, of the live replicas that the directory lists as the members of
// the service. Whoever keeps something for the same key is best placed there. It is a
// hint, as the directory is: for a while several replicas, or none, may take themselves
// for the owner.
func Owns(self id.Name, members []directory.Member, a subject.Command) bool {
	return owner(a.Partition(), self, members) == self
}

// owner returns the replica with the highest hash for the partition (rendezvous
// hashing): when one comes or goes, only its own partitions move. self counts even
// while the directory does not list it: then every replica takes itself for the
// owner, which costs warm caches and nothing else.
func owner(p subject.Partition, self id.Name, members []directory.Member) id.Name {
	best, most := self, weight(p, self)
	for _, m := range members {
		if w := weight(p, m.Instance); w > most || w == most && m.Instance.String() > best.String() {
			best, most = m.Instance, w
		}
	}
	return best
}

func weight(p subject.Partition, instance id.Name) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.String()))
	_, _ = h.Write([]byte(instance.String()))
	// FNV leaves the high bits of short inputs alike; a final mix spreads them.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}
