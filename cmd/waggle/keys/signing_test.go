package keys_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/internal/signature"
)

// accepted returns the public keys that services accept, and the one of the seed that gateways use.
func accepted(t *testing.T, dir string) (public []string, current string) {
	t.Helper()
	text, err := os.ReadFile(keys.SigningPublicFile(dir))
	require.NoError(t, err)
	seed, err := os.ReadFile(keys.SigningFile(dir))
	require.NoError(t, err)
	s, err := signature.NewSigner([]byte(strings.TrimSpace(string(seed))), nil)
	require.NoError(t, err)
	current, err = s.Public()
	require.NoError(t, err)
	return strings.Fields(string(text)), current
}

// TestSigningKeysAreRotated: at each step services accept the key that gateways sign with before it and after it.
func TestSigningKeysAreRotated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	made, err := keys.EnsureSigning(dir)
	require.NoError(t, err)
	require.True(t, made)
	made, err = keys.EnsureSigning(dir)
	require.NoError(t, err)
	require.False(t, made)
	info, err := os.Stat(keys.SigningFile(dir))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	public, first := accepted(t, dir)
	require.Equal(t, []string{first}, public)

	for range 2 { // a repeat changes nothing
		require.NoError(t, keys.RotateSigning(dir, keys.SigningAdd))
	}
	public, current := accepted(t, dir)
	require.Equal(t, first, current)
	require.Len(t, public, 2)
	require.Contains(t, public, first)

	for range 2 {
		require.NoError(t, keys.RotateSigning(dir, keys.SigningSwitch))
	}
	both, second := accepted(t, dir)
	require.NotEqual(t, first, second)
	require.ElementsMatch(t, public, both)

	for range 2 {
		require.NoError(t, keys.RotateSigning(dir, keys.SigningDrop))
	}
	public, current = accepted(t, dir)
	require.Equal(t, second, current)
	require.Equal(t, []string{second}, public)
	require.Error(t, keys.RotateSigning(dir, "turn"))
	_, err = keys.Ensure(dir)
	require.NoError(t, err)
	_, current = accepted(t, dir)
	require.Equal(t, second, current, "keys that exist stay")
}

// TestSigningKeysStayInTheirFolder: a planted link cannot lead a write out of the folder.
func TestSigningKeysStayInTheirFolder(t *testing.T) {
	for _, file := range []func(string) string{keys.SigningFile, keys.SigningPublicFile} {
		dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
		require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o600))
		require.NoError(t, os.Symlink(victim, file(dir)+".new"))
		_, err := keys.EnsureSigning(dir)
		require.Error(t, err)
		text, err := os.ReadFile(victim)
		require.NoError(t, err)
		require.Equal(t, "mine", string(text))
	}
}
