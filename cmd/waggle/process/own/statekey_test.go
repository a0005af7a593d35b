package own

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
)

func TestAProcessThatIsItsOwnBusHasAKeyOfItsOwn(t *testing.T) {
	c := config.Default()
	c.Data = t.TempDir()
	keys, err := StateKeys(c, true)
	require.NoError(t, err)
	require.Len(t, keys, 1)
	require.Len(t, keys[0], 64)
	info, err := os.Stat(filepath.Join(c.Data, "state.key"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again, err := StateKeys(c, true)
	require.NoError(t, err)
	require.Equal(t, keys, again, "it keeps its key")
	c.Data = t.TempDir()
	other, err := StateKeys(c, true)
	require.NoError(t, err)
	require.NotEqual(t, keys, other)
	none, err := StateKeys(c, false)
	require.NoError(t, err)
	require.Empty(t, none, "processes of one installation cannot each have a key of their own")
}

func TestStateKeysComeFromConfigurationOrFile(t *testing.T) {
	first, second := strings.Repeat("a", 32), strings.Repeat("b", 40)
	c := config.Default()
	c.Data = t.TempDir()
	c.Session.StateKeys = []config.Secret{config.Secret(first), config.Secret(second)}
	keys, err := StateKeys(c, true)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte(first), []byte(second)}, keys)

	c.Session.StateKeys = nil
	c.Session.StateKeyFile = filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(c.Session.StateKeyFile, []byte("\n "+second+" \r\n"+first), 0o600))
	keys, err = StateKeys(c, true)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte(second), []byte(first)}, keys)

	for text, want := range map[string]string{"": "holds no key", "short\n": "key 1 has fewer than 32"} {
		require.NoError(t, os.WriteFile(c.Session.StateKeyFile, []byte(text), 0o600))
		_, err = StateKeys(c, true)
		require.ErrorContains(t, err, want)
	}
	c.Session.StateKeyFile = filepath.Join(t.TempDir(), "none")
	_, err = StateKeys(c, true)
	require.ErrorIs(t, err, os.ErrNotExist)
}
