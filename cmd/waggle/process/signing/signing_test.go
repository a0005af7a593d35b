package signing_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/cmd/waggle/process/signing"
	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// TestReplacedSigningKeysAreUsed, and unusable ones are not.
func TestReplacedSigningKeysAreUsed(t *testing.T) {
	dir := t.TempDir()
	_, err := keys.EnsureSigning(dir)
	require.NoError(t, err)
	first, err := os.ReadFile(keys.SigningFile(dir))
	require.NoError(t, err)
	old, err := signature.NewSigner(first[:len(first)-1], nil)
	require.NoError(t, err)
	k, err := signing.Open(config.Signing{PublicKeyFile: keys.SigningPublicFile(dir)}, false, time.Now)
	require.NoError(t, err)
	accepts := func(s *signature.Signer) bool {
		c := command.Command{ID: "c", Service: command.Session, Verb: command.Delete, Tenant: id.DefaultTenant, Key: id.EntityFromExternal("s"), Principal: "ann"}
		require.NoError(t, s.Sign(&c))
		_, err := k.Verifier.Check(c, time.Now(), time.Now())
		return err == nil
	}
	require.True(t, accepts(old))
	for _, step := range []string{keys.SigningAdd, keys.SigningSwitch} {
		require.NoError(t, keys.RotateSigning(dir, step))
		require.NoError(t, k.Look())
		require.True(t, accepts(old), step)
	}
	second, err := os.ReadFile(keys.SigningFile(dir))
	require.NoError(t, err)
	next, err := signature.NewSigner(second[:len(second)-1], nil)
	require.NoError(t, err)
	require.True(t, accepts(next))
	require.NoError(t, os.WriteFile(keys.SigningPublicFile(dir), []byte("half of a k"), 0o600))
	require.Error(t, k.Look())
	require.NoError(t, os.WriteFile(keys.SigningPublicFile(dir), nil, 0o600))
	require.Error(t, k.Look(), "an empty file does not withdraw all keys")
	require.True(t, accepts(old))
	require.NoError(t, keys.RotateSigning(dir, keys.SigningDrop))
	require.NoError(t, k.Look())
	require.False(t, accepts(old))
	require.True(t, accepts(next))
}
