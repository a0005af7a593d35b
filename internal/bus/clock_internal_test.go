package bus

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestOneWrongServerChangesNothing: of three servers two are right; of two the unchanged one counts.
func TestOneWrongServerChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		right := rapid.Int64Range(-1_000_000, 1_000_000).Draw(t, "right")
		other := right + rapid.Int64Range(-10, 10).Draw(t, "jitter")
		wrong := right + rapid.Int64Range(-1_000_000, 1_000_000).Draw(t, "by")
		got := agreed([]int64{wrong, right, other}, right)
		require.LessOrEqual(t, max(got-right, right-got), int64(10))
		require.Equal(t, right, agreed([]int64{wrong, right}, right))
		require.Equal(t, wrong, agreed([]int64{wrong}, right), "one server's word is all there is")
	})
}
