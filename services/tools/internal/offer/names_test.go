package offer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOfferedNames(t *testing.T) {
	require.Equal(t, "workspace_read_file", Name("workspace", "read_file"))
	require.Equal(t, "s_a_b_"+sum("a.b"), Name("s", "a.b"))
	require.Equal(t, "s__"+sum(""), Name("s", ""))
	require.NotEqual(t, Name("s", "a.b"), Name("s", "a/b"))
	require.NotEqual(t, Name("s", strings.Repeat("x", 100)), Name("s", strings.Repeat("x", 101)))
}

func sum(s string) string { n := Name("s", s); return n[len(n)-HashChars:] }

func TestOfferedNameProperty(t *testing.T) {
	servers := rapid.StringMatching(`[A-Za-z0-9_-]{1,30}`)
	rapid.Check(t, func(t *rapid.T) {
		server := servers.Draw(t, "server")
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		name := Name(server, a)
		require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, name)
		require.True(t, BelongsTo(name, server))
		require.Equal(t, name, Name(server, a))
		if a != b {
			require.NotEqual(t, name, Name(server, b))
		}
		if other := servers.Draw(t, "other"); CheckProviders([]string{server, other}) == nil {
			require.False(t, BelongsTo(name, other))
		}
	})
}
