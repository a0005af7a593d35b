package keys_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

func TestKeysAreMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secrets", "nats")
	made, err := keys.Ensure(dir)
	require.NoError(t, err)
	require.Equal(t, keys.Roles(), made)
	first, err := os.ReadFile(keys.PublicFile(dir))
	require.NoError(t, err)
	require.Equal(t, len(keys.Roles()), strings.Count(string(first), "\n"))

	made, err = keys.Ensure(dir)
	require.NoError(t, err)
	require.Empty(t, made, "keys that are in use are not replaced")
	again, err := os.ReadFile(keys.PublicFile(dir))
	require.NoError(t, err)
	require.Equal(t, string(first), string(again))

	require.NoError(t, os.Remove(keys.SeedFile(dir, permission.Tools)))
	made, err = keys.Ensure(dir)
	require.NoError(t, err)
	require.Equal(t, []permission.Role{permission.Tools}, made)
}

func TestSeedsAreForTheirOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	_, err := keys.Ensure(dir)
	require.NoError(t, err)
	public, err := os.ReadFile(keys.PublicFile(dir))
	require.NoError(t, err)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	for _, role := range keys.Roles() {
		file := keys.SeedFile(dir, role)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		seed, err := os.ReadFile(file)
		require.NoError(t, err)
		pair, err := nkeys.ParseDecoratedUserNKey(seed)
		require.NoError(t, err)
		key, err := pair.PublicKey()
		require.NoError(t, err)
		require.Contains(t, string(public), permission.Variable(role)+"="+key+"\n")
		require.NotContains(t, string(public), strings.TrimSpace(string(seed)))
	}
}

func TestWhatIsNoSeedIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(keys.SeedFile(dir, permission.Worker), []byte("nothing"), 0o600))
	_, err := keys.Ensure(dir)
	require.ErrorContains(t, err, "worker.nk does not contain a user seed")
}

func TestTheRoutesOfAClusterAreMadeOnce(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, keys.EnsureRoutes(dir, []string{"nats-1", "nats-2"}))
	first, err := os.ReadFile(keys.RoutesFile(dir))
	require.NoError(t, err)
	require.Regexp(t, `nats-route://waggle:[0-9a-f]{48}@nats-2:6222`, string(first))
	require.NoError(t, keys.EnsureRoutes(dir, []string{"nats-3"}))
	again, err := os.ReadFile(keys.RoutesFile(dir))
	require.NoError(t, err)
	require.Equal(t, string(first), string(again))
	require.Error(t, keys.EnsureRoutes(t.TempDir(), []string{`a" ]`}))
}
