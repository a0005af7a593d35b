package command

import (
	"hash/fnv"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// Owns reports whether the replica self is served first for the commands of the address' key in an installation with n
// partitions, among the live replicas in members. State for the same key is best kept there. The result is a hint, like the directory: for a while
// several replicas, or not one of them, may consider themselves the owner.
func Owns(n subject.Partitions, self id.Name, members []directory.Member, a subject.Command) bool {
	return owner(n.OfCommand(a), self, members) == self
}

// owner returns the replica with the highest hash for the partition (rendezvous hashing): when a replica comes or
// goes, only its own partitions move. self counts even while the directory does not list it. Then several replicas
// may consider themselves the owner, which costs only warm caches.
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
