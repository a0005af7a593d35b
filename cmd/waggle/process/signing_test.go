package process

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/internal/signature"
	"github.com/waggle-dev/waggle/proto-schemas/command"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// signs opens the signing keys of a process with one role.
func signs(c config.Signing, use config.For) (*process, error) {
	p := &process{Options: Options{Config: config.Config{Signing: c, Data: "no-such-folder"}, Use: use}}
	return p, p.openSigning()
}

// TestWithoutSigningKeysNoRoleStarts: the error says how to get them.
func TestWithoutSigningKeysNoRoleStarts(t *testing.T) {
	for _, role := range config.Roles {
		_, err := signs(config.Signing{}, config.For{Roles: []string{role}})
		require.ErrorContains(t, err, "waggle keys", role)
		require.ErrorContains(t, err, "WAGGLE_SIGNING_", role)
	}
	dir := t.TempDir()
	_, err := keys.EnsureSigning(dir)
	require.NoError(t, err)
	_, err = signs(config.Signing{PublicKeyFile: keys.SigningPublicFile(dir)}, config.For{Roles: []string{config.RoleGateway}})
	require.ErrorContains(t, err, "signing.key_file")
	_, err = signs(config.Signing{PublicKeys: []string{"x"}}, config.For{Roles: []string{config.RoleSession}})
	require.ErrorContains(t, err, "not a gateway's public key")
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/user", seed, 0o600))
	_, err = signs(config.Signing{KeyFile: dir + "/user"}, config.For{Roles: []string{config.RoleGateway}})
	require.ErrorContains(t, err, "signing key is not valid")
}

// TestReplacedSigningKeysAreUsed, and unusable ones are not.
func TestReplacedSigningKeysAreUsed(t *testing.T) {
	dir := t.TempDir()
	_, err := keys.EnsureSigning(dir)
	require.NoError(t, err)
	first, err := os.ReadFile(keys.SigningFile(dir))
	require.NoError(t, err)
	old, err := signature.NewSigner(first[:len(first)-1], nil)
	require.NoError(t, err)
	p, err := signs(config.Signing{PublicKeyFile: keys.SigningPublicFile(dir)}, config.For{Roles: []string{config.RoleSession}})
	require.NoError(t, err)
	accepts := func(s *signature.Signer) bool {
		c := command.Command{ID: "c", Service: command.Session, Verb: command.Delete, Tenant: id.DefaultTenant, Key: id.EntityFromExternal("s"), Principal: "ann"}
		require.NoError(t, s.Sign(&c))
		_, err := p.signing.verifier.Check(c, time.Now())
		return err == nil
	}
	require.True(t, accepts(old))
	for _, step := range []string{keys.SigningAdd, keys.SigningSwitch} {
		require.NoError(t, keys.RotateSigning(dir, step))
		require.NoError(t, p.signing.look())
		require.True(t, accepts(old), step)
	}
	second, err := os.ReadFile(keys.SigningFile(dir))
	require.NoError(t, err)
	next, err := signature.NewSigner(second[:len(second)-1], nil)
	require.NoError(t, err)
	require.True(t, accepts(next))
	require.NoError(t, os.WriteFile(keys.SigningPublicFile(dir), []byte("half of a k"), 0o600))
	require.Error(t, p.signing.look())
	require.NoError(t, os.WriteFile(keys.SigningPublicFile(dir), nil, 0o600))
	require.Error(t, p.signing.look(), "an empty file does not withdraw all keys")
	require.True(t, accepts(old))
	require.NoError(t, keys.RotateSigning(dir, keys.SigningDrop))
	require.NoError(t, p.signing.look())
	require.False(t, accepts(old))
	require.True(t, accepts(next))
}
