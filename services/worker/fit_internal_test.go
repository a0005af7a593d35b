package worker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFitKnowsTheEncodedLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "s")
		limit := rapid.IntRange(0, 100).Draw(t, "limit")
		got, cut := fit(s, limit)
		require.True(t, strings.HasPrefix(s, got))
		require.Equal(t, cut, got != s)
		raw, err := json.Marshal(got)
		require.NoError(t, err)
		require.LessOrEqual(t, len(raw)-2, limit)
		if cut {
			_, width := decode(s[len(got):])
			raw, err = json.Marshal(s[:len(got)+width])
			require.NoError(t, err)
			require.Greater(t, len(raw)-2, limit, "it is the longest")
		}
	})
}

func decode(s string) (rune, int) {
	for i := range s {
		if i > 0 {
			return 0, i
		}
	}
	return 0, len(s)
}
