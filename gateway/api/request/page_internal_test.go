package request

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/gateway/answer"
)

// TestPageOfIsBoundedInBytes and has one item at least.
func TestPageOfIsBoundedInBytes(t *testing.T) {
	big := strings.Repeat("x", answer.MaxPage/3)
	items := []string{"b" + big, "a" + strings.Repeat("y", 2*answer.MaxPage), "d", "c" + big, "e" + big}
	key := func(s string) string { return s[:1] }
	var got []string
	var pages []int
	for before := ""; ; {
		p, err := PageOf(httptest.NewRequestWithContext(t.Context(), "GET", "/?before="+before, nil), items, key)
		require.NoError(t, err)
		for _, s := range p.Items {
			got = append(got, key(s))
		}
		pages = append(pages, len(p.Items))
		if before = p.Next; before == "" {
			break
		}
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, got)
	require.Equal(t, []int{1, 3, 1}, pages)
}
