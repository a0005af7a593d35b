package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/keys"
	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/proto-schemas/subject/permission"
)

// TestABusOverTLS: the server of server-tls.conf accepts only clients with a
// certificate beside their key.
func TestABusOverTLS(t *testing.T) {
	a := process.NewAuthority(t)
	cert, key := a.Issue("server")
	t.Setenv("WAGGLE_NATS_TLS_CERT", cert)
	t.Setenv("WAGGLE_NATS_TLS_KEY", key)
	t.Setenv("WAGGLE_NATS_TLS_CA", a.CA())
	cert, key = a.Issue("client")
	known := []string{"WAGGLE_NATS_TLS_CA=" + a.CA(), "WAGGLE_NATS_TLS_CERT=" + cert, "WAGGLE_NATS_TLS_KEY=" + key}
	g := startGuarded(t, "server-tls.conf", known...)
	require.Contains(t, g.run(permission.Bootstrap, "bootstrap"), "the streams are")
	askAndCheck(t, g.serve())
	require.Empty(t, g.log.all())

	g.env = known[:1]
	stranger := process.Start(t, process.Options{
		Name: "stranger", Dir: g.dir, Env: g.as(permission.Bootstrap), Args: []string{"bootstrap", "--timeout", "2s"},
	})
	require.Error(t, stranger.Wait())
}

// TestEveryServerConfigurationLoads: also those of clusters, beside the secrets that
// they expect.
func TestEveryServerConfigurationLoads(t *testing.T) {
	root := t.TempDir()
	etc, secrets := filepath.Join(root, "etc", "nats"), filepath.Join(root, "run", "secrets")
	require.NoError(t, os.CopyFS(etc, os.DirFS(filepath.Join("..", "deploy", "nats"))))
	_, err := keys.Ensure(secrets)
	require.NoError(t, err)
	require.NoError(t, keys.EnsureRoutes(secrets, []string{"nats-1", "nats-2", "nats-3"}))
	publicKeys(t, secrets)
	a := process.NewAuthority(t)
	cert, key := a.Issue("server")
	for name, value := range map[string]string{"NAME": "nats-1", "TLS_CERT": cert, "TLS_KEY": key, "TLS_CA": a.CA()} {
		t.Setenv("WAGGLE_NATS_"+name, value)
	}
	for _, c := range []struct {
		file         string
		routes       int
		tls, between bool
	}{
		{"server.conf", 0, false, false},
		{"server-tls.conf", 0, true, false},
		{"cluster.conf", 3, false, false},
		{"cluster-tls.conf", 3, true, true},
	} {
		opts, err := server.ProcessConfigFile(filepath.Join(etc, c.file))
		require.NoError(t, err, c.file)
		require.Len(t, opts.Nkeys, len(keys.Roles()), c.file)
		require.Len(t, opts.Routes, c.routes, c.file)
		require.Equal(t, c.tls, opts.TLSConfig != nil, c.file)
		require.Equal(t, c.between, opts.Cluster.TLSConfig != nil, c.file)
		require.True(t, opts.JetStream, c.file)
		require.Equal(t, "nats-1", opts.ServerName, c.file)
		require.Equal(t, c.routes > 0, opts.Cluster.Password != "", c.file)
	}
}
