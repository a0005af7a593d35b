package process

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/cmd/waggle/config"
	"github.com/waggle-dev/waggle/cmd/waggle/process/listener"
	"github.com/waggle-dev/waggle/internal/auth"
	"github.com/waggle-dev/waggle/internal/lifecycle"
	"github.com/waggle-dev/waggle/internal/lifecycle/lifecycletest"
)

func TestComponents(t *testing.T) {
	t.Run("reloader", func(t *testing.T) {
		lifecycletest.Exercise(t, func() lifecycle.Component {
			r, err := (&process{Options: Options{Logger: zerolog.Nop()}, registry: prometheus.NewRegistry()}).reloader()
			require.NoError(t, err)
			return r
		})
	})
	t.Run("announcer", func(t *testing.T) {
		lifecycletest.Exercise(t, func() lifecycle.Component { return &announcer{tell: func() {}} })
	})
}

func TestATakenAddressIsNamedWithTheWayOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	taken := l.Addr().String()
	err = Run(t.Context(), Options{Config: config.Config{Addr: taken}, Logger: zerolog.Nop()})
	require.EqualError(t, err, taken+` is taken, perhaps by another "waggle up"; choose another address with --addr or WAGGLE_ADDR`)
	err = Run(t.Context(), Options{Config: config.Config{Telemetry: config.Telemetry{Addr: taken}}, Logger: zerolog.Nop()})
	require.ErrorContains(t, err, "--telemetry-addr")
	_, _, err = free(taken)
	require.ErrorContains(t, err, taken+" is taken")
	require.ErrorContains(t, err, "--nats-addr")
	h := listener.NewHealth(taken, func() error { return nil })
	require.ErrorContains(t, hint(h.Start(t.Context()), config.Config{Addr: taken}), "--addr")
	other := listener.NewTelemetry(taken, prometheus.NewRegistry())
	require.ErrorContains(t, hint(other.Start(t.Context()), config.Config{Addr: "x", Telemetry: config.Telemetry{Addr: taken}}), "choose another address with --telemetry-addr")
	_, port, err := free("127.0.0.1:0")
	require.NoError(t, err)
	require.Equal(t, -1, port)
}

func TestADataFolderHasOneOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	unlock, err := lock(dir)
	require.NoError(t, err)
	_, err = lock(dir)
	require.ErrorContains(t, err, "in use by another waggle process")
	unlock()
	unlock, err = lock(dir)
	require.NoError(t, err)
	unlock()
}

func TestWithoutAuthenticationOnlyLoopback(t *testing.T) {
	c := config.Default()
	c.Addr = "0.0.0.0:9000"
	_, err := authenticator(context.Background(), c, zerolog.Nop())
	require.Error(t, err)
	c.Addr = "127.0.0.1:9000"
	a, err := authenticator(context.Background(), c, zerolog.Nop())
	require.NoError(t, err)
	require.Equal(t, auth.Anonymous(), a)
}

func TestKeysOfTheConfigurationAreAccepted(t *testing.T) {
	c := config.Default()
	c.Addr = "0.0.0.0:9000"
	c.Auth.APIKeys = []config.APIKey{{
		ID: "k", SHA256: config.Secret(auth.HashKey("open sesame, please")), Subject: "alice", Tenant: "acme", Roles: []string{"user"},
	}}
	a, err := authenticator(context.Background(), c, zerolog.Nop())
	require.NoError(t, err)
	p, err := a.Authenticate(t.Context(), "open sesame, please")
	require.NoError(t, err)
	require.Equal(t, "alice", p.Subject)
	require.Equal(t, "acme", p.Tenant.String())
	_, err = a.Authenticate(t.Context(), "wrong")
	require.Error(t, err)
}

func TestTheTopologyFollowsTheConfiguration(t *testing.T) {
	c := config.Default()
	standard := Topology(c)
	require.Equal(t, 1, standard.Replicas)
	require.Positive(t, standard.EventMaxAge)
	c.NATS.Replicas, c.NATS.EventMaxBytes, c.NATS.ObjectMaxBytes = 3, 1<<20, 2<<20
	require.Equal(t, 3, Topology(c).Replicas)
	require.EqualValues(t, 1<<20, Topology(c).EventMaxBytes)
	require.EqualValues(t, 2<<20, Topology(c).ObjectMaxBytes)
	require.Equal(t, standard.EventMaxAge, Topology(c).EventMaxAge)
}

func TestAProcessIsNamedForItsRoles(t *testing.T) {
	p := &process{Options: Options{Use: config.For{Roles: []string{"worker", "gateway"}}}}
	require.Equal(t, "worker+gateway", p.name())
	p.Use.Roles = config.Roles
	require.Equal(t, "all", p.name())
	require.False(t, strings.Contains(p.name(), "+"))
}

func TestEveryRoleHasComponents(t *testing.T) {
	builders := (&process{}).builders()
	for _, role := range config.Roles {
		if role != config.RoleGateway { // it starts last, and has a builder of its own
			require.NotEmpty(t, builders[role], role)
		}
	}
	require.Len(t, builders, len(config.Roles)-1)
}
