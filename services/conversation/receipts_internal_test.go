package conversation

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheOldestIDsAreForgotten, and a set that was encoded has the same ids and forgets them in the same order.
func TestTheOldestIDsAreForgotten(t *testing.T) {
	t.Parallel()
	var s marks
	require.False(t, s.has("0"))
	id := func(n int) string { return fmt.Sprint(n) }
	for n := range maxMarks {
		s.add(id(n))
		s.add(id(0)) // once is enough
	}
	require.True(t, s.has(id(0)))
	s, err := decodeMarks(s.encode())
	require.NoError(t, err)
	require.True(t, s.has(id(0)))
	s.add("new")
	require.False(t, s.has(id(0)))
	require.True(t, s.has(id(1)) && s.has("new"))
	_, err = decodeMarks(s.encode()[1:])
	require.Error(t, err)
}
