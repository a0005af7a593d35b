package marks_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/services/conversation/marks"
)

// TestTheOldestIDsAreForgotten, and a set that was encoded has the same ids and forgets them in the same order.
func TestTheOldestIDsAreForgotten(t *testing.T) {
	t.Parallel()
	var s marks.Set
	require.False(t, s.Has("0"))
	id := func(n int) string { return fmt.Sprint(n) }
	for n := range marks.Max {
		s.Add(id(n))
		s.Add(id(0)) // once is enough
	}
	require.True(t, s.Has(id(0)))
	s, err := marks.Decode(s.Encode())
	require.NoError(t, err)
	require.True(t, s.Has(id(0)))
	s.Add("new")
	require.False(t, s.Has(id(0)))
	require.True(t, s.Has(id(1)) && s.Has("new"))
	_, err = marks.Decode(s.Encode()[1:])
	require.Error(t, err)
}
