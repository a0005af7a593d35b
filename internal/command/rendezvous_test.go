package command

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/internal/directory"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

func listed(names ...string) []directory.Member {
	out := make([]directory.Member, 0, len(names))
	for _, n := range names {
		out = append(out, directory.Member{Instance: id.MustName(n)})
	}
	return out
}

// All replicas that see the same members name the same owner, whatever the order,
// and when one leaves, only its own partitions move.
func TestOwnersAgreeAndMoveLittle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9_-]{1,40}`), 2, 8, rapid.ID[string]).Draw(t, "members")
		members := listed(names...)
		shuffled := rapid.Permutation(members).Draw(t, "seen as")
		gone := rapid.IntRange(1, len(names)-1).Draw(t, "gone")
		left := append(listed(names[:gone]...), listed(names[gone+1:]...)...)
		for _, p := range subject.DefaultPartitions.All() {
			before := owner(p, members[0].Instance, members)
			for _, m := range members {
				if got := owner(p, m.Instance, shuffled); got != before {
					t.Fatalf("partition %s: %s says %s, others say %s", p, m.Instance, got, before)
				}
			}
			after := owner(p, members[0].Instance, left)
			if before != members[gone].Instance && after != before {
				t.Fatalf("partition %s moved from %s to %s when %s left", p, before, after, names[gone])
			}
		}
	})
}

// The shares are fair on average. Sixteen partitions cannot be even for every set.
func TestSharesAreFair(t *testing.T) {
	t.Parallel()
	const sets, replicas = 500, 4
	count := 0
	for s := range sets {
		var names []string
		for r := range replicas {
			names = append(names, fmt.Sprintf("0199c3d2-41f0-7a53-8e0b-%04d%08d", s, r))
		}
		for _, p := range subject.DefaultPartitions.All() {
			if owner(p, id.MustName(names[0]), listed(names...)).String() == names[0] {
				count++
			}
		}
	}
	mean := float64(count) / sets
	t.Logf("on average %.2f of %d partitions for one of %d replicas", mean, subject.DefaultPartitions, replicas)
	require.InDelta(t, float64(subject.DefaultPartitions)/replicas, mean, 0.5)
}

func TestWhoIsNotListedTakesItselfForTheOwner(t *testing.T) {
	t.Parallel()
	self := id.MustName("self")
	for _, p := range subject.DefaultPartitions.All() {
		require.Equal(t, self, owner(p, self, nil))
	}
}
