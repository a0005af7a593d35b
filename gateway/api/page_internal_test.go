package api

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPageOfIsBoundedInBytes and has one item at least.
func TestPageOfIsBoundedInBytes(t *testing.T) {
	big := strings.Repeat("x", maxPage/3)
	items := []string{"b" + big, "a" + strings.Repeat("y", 2*maxPage), "d", "c" + big, "e" + big}
	key := func(s string) string { return s[:1] }
	var got []string
	var pages []int
	for before := ""; ; {
		p, err := pageOf(httptest.NewRequestWithContext(t.Context(), "GET", "/?before="+before, nil), items, key)
		require.NoError(t, err)
		for _, s := range p.items {
			got = append(got, key(s))
		}
		pages = append(pages, len(p.items))
		if before = p.next; before == "" {
			break
		}
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, got)
	require.Equal(t, []int{1, 3, 1}, pages)
}
