package index

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// TestCoverageIsASet: what it reaches is what a plain set of sequences reaches, whatever is added and wherever the position moves,
// back after a restored backup too.
func TestCoverageIsASet(t *testing.T) {
	t.Parallel()
	const p = subject.Partition(200)
	rapid.Check(t, func(t *rapid.T) {
		c, at, covered := &coverage{}, positions{}, map[uint64]bool{}
		at.Shards[p] = rapid.Uint64Range(1, 200).Draw(t, "position")
		c.begin(at)
		reached := func() uint64 {
			n := at.Shards[p]
			for covered[n+1] {
				n++
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for _, seq := range rapid.SliceOf(rapid.Uint64Range(0, 400)).Draw(t, "sequences") {
					c.add(p, []uint64{seq})
					if seq > at.Shards[p] {
						covered[seq] = true
					}
				}
			},
			"move": func(t *rapid.T) {
				to := at
				to.Shards[p] = rapid.OneOf(rapid.Just(reached()), rapid.Uint64Range(1, 300)).Draw(t, "to")
				c.move(to)
				for seq := range covered {
					if to.Shards[p] < at.Shards[p] || seq <= to.Shards[p] {
						delete(covered, seq)
					}
				}
				at = to
				c.begin(at) // as the next catch-up does
			},
			"foreign": func(t *rapid.T) { // another process stored a position
				at.Shards[p] += rapid.Uint64Range(1, 5).Draw(t, "more")
				clear(covered)
				c.begin(at)
			},
			"": func(t *rapid.T) {
				require.Equal(t, reached(), c.reach(p))
				require.Zero(t, c.reach(p+1))
			},
		})
	})
}

// TestALostIndexHasNoCoverage: without a stored position nothing counts as covered.
func TestALostIndexHasNoCoverage(t *testing.T) {
	t.Parallel()
	c := &coverage{}
	c.begin(positions{})
	c.add(0, []uint64{1, 2, 3})
	require.Equal(t, uint64(3), c.reach(0))
	c.begin(positions{})
	require.Zero(t, c.reach(0))
	c.add(0, []uint64{maxCovered + 1})
	require.Zero(t, c.bits[0].Len(), "bounded")
}

// TestPositionsOfEachNumberOfPartitionsAreRead: those of 16 shards, as earlier versions store them, and those of 256.
func TestPositionsOfEachNumberOfPartitionsAreRead(t *testing.T) {
	t.Parallel()
	var old positions
	require.NoError(t, json.Unmarshal([]byte(`{"shards":[7,0,0,0,0,0,0,0,0,0,0,0,0,0,0,9]}`), &old))
	require.Equal(t, uint64(9), old.Shards[15])
	most := old
	most.Shards[255] = 3
	for _, p := range []positions{{}, old, most} {
		raw, err := json.Marshal(p)
		require.NoError(t, err)
		var got positions
		require.NoError(t, json.Unmarshal(raw, &got))
		require.Equal(t, p, got)
	}
}
