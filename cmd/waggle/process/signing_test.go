package process

import (
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/cmd/waggle/process/own"
)

// signs opens the signing keys of a process with one role.
func signs(c config.Signing, use config.For) error {
	p := &process{Options: Options{Config: config.Config{Signing: c, Data: "no-such-folder"}, Use: use}}
	return p.openSigning()
}

// TestWithoutSigningKeysNoRoleStarts: the error says how to get them.
func TestWithoutSigningKeysNoRoleStarts(t *testing.T) {
	for _, role := range config.Roles {
		err := signs(config.Signing{}, config.For{Roles: []string{role}})
		require.ErrorContains(t, err, "waggle keys", role)
		require.ErrorContains(t, err, "WAGGLE_SIGNING_", role)
	}
	dir := t.TempDir()
	_, err := keys.EnsureSigning(dir)
	require.NoError(t, err)
	err = signs(config.Signing{PublicKeyFile: keys.SigningPublicFile(dir)}, config.For{Roles: []string{config.RoleGateway}})
	require.ErrorContains(t, err, "signing.key_file")
	err = signs(config.Signing{PublicKeys: []string{"x"}}, config.For{Roles: []string{config.RoleSession}})
	require.ErrorContains(t, err, "not a gateway's public key")
	user, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := user.Seed()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/user", seed, 0o600))
	err = signs(config.Signing{KeyFile: dir + "/user"}, config.For{Roles: []string{config.RoleGateway}})
	require.ErrorContains(t, err, "signing key is not valid")
}

// TestAProcessWithItsOwnBusMakesItsSigningKey: also at the address that the settings name for the bus, which is the default of
// "waggle up" at its first start.
func TestAProcessWithItsOwnBusMakesItsSigningKey(t *testing.T) {
	for name, at := range map[string]string{"the default address": nats.DefaultURL, "another address": "nats://127.0.0.1:1"} {
		t.Run(name, func(t *testing.T) {
			c := config.Config{Data: t.TempDir()}
			_, err := own.Users(c)
			require.NoError(t, err)
			_, err = own.TellURL(c, at)
			require.NoError(t, err)
			p := &process{Options: Options{Config: c, Use: config.For{Roles: config.Roles, Embedded: true}}}
			require.NoError(t, p.openSigning())
			again := &process{Options: p.Options}
			require.NoError(t, again.openSigning())
			_, public := p.signing.State()
			_, same := again.signing.State()
			require.NotEmpty(t, public)
			require.Equal(t, public, same)
		})
	}
}
