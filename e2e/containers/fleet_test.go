package containers_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/network"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

const (
	natsImage, waggleImage = "waggle-nats:dev", "waggle:dev" // scripts/images.sh builds them
	// maxWait bounds one step of the engine: a slow machine takes its time to elect leaders.
	maxWait     = 3 * time.Minute
	gatewayPort = "9000/tcp"
	servers     = 3
)

// fleet is a cluster of NATS servers with one container of each role that a chat with tools needs.
type fleet struct {
	t       *testing.T
	root    string // of the repository
	secrets string
	network *testcontainers.DockerNetwork
	engine  *testcontainers.DockerClient
	nats    []*testcontainers.DockerContainer
	url     string // of the gateway's session protocol
	token   string
}

// TestMain switches off testcontainers' reaper, an image of a registry: the tests end their containers themselves.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"TESTCONTAINERS_RYUK_DISABLED": "true", "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1"} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

// start starts the fleet and returns when its gateway is healthy.
func start(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, secrets: filepath.Join(t.TempDir(), "secrets")}
	var err error
	f.root, err = filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), filepath.Join(f.root, "scripts", "secrets.sh"), process.Binary(t), f.secrets).CombinedOutput()
	require.NoError(t, err, "%s", out)
	token, err := os.ReadFile(filepath.Join(f.secrets, "api.key"))
	require.NoError(t, err)
	f.token = string(token)
	f.engine, err = testcontainers.NewDockerClientWithOpts(within(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.engine.Close() })
	f.network, err = network.New(within(t))
	require.NoError(t, err)
	testcontainers.CleanupNetwork(t, f.network)
	for i := range servers {
		f.nats = append(f.nats, f.server(natsName(i)))
	}
	for _, c := range f.nats {
		f.healthy(c)
	}
	f.role("bootstrap", wait.ForExit(), "bootstrap", "--timeout", maxWait.String())
	for _, role := range []string{"session", "pipeline", "worker", "tools"} {
		f.role(role, wait.ForHealthCheck(), "serve", "--role", role)
	}
	gateway := f.role("gateway", wait.ForHealthCheck(), "serve", "--role", "gateway")
	addr, err := gateway.PortEndpoint(within(t), gatewayPort, "ws")
	require.NoError(t, err)
	f.url = addr + "/ws/session"
	return f
}

// run starts a container on the fleet's network under the name, hardened as docker-compose.yml does it. It is removed
// at the end of the test, with its log if the test has failed.
func (f *fleet) run(image, name string, binds []string, options ...testcontainers.ContainerCustomizer) *testcontainers.DockerContainer {
	f.t.Helper()
	options = append([]testcontainers.ContainerCustomizer{
		network.WithNetwork([]string{name}, f.network),
		testcontainers.WithTmpfs(map[string]string{"/tmp": "mode=1777,size=64m"}),
		testcontainers.WithLogger(log.TestLogger(f.t)),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.ReadonlyRootfs, h.CapDrop, h.SecurityOpt = true, []string{"ALL"}, []string{"no-new-privileges:true"}
			h.Binds = binds
		}),
	}, options...)
	c, err := testcontainers.Run(within(f.t), image, options...)
	if c != nil {
		f.t.Cleanup(func() {
			if f.t.Failed() {
				f.t.Logf("log of %s:\n%s", name, logs(c))
			}
			require.NoError(f.t, c.Terminate(context.Background(), testcontainers.StopTimeout(0), testcontainers.RemoveVolumes(f.volume(name))))
		})
	}
	require.NoError(f.t, err, name)
	return c
}

// logs returns the last lines of a container's log.
func logs(c *testcontainers.DockerContainer) string {
	r, err := c.Logs(context.Background())
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var b strings.Builder
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			break
		}
	}
	lines := strings.Split(b.String(), "\n")
	return strings.Join(lines[max(len(lines)-40, 0):], "\n")
}

// volume returns the name of a container's volume. The engine makes it when it is mounted.
func (f *fleet) volume(name string) string { return "waggle-" + f.network.Name + "-" + name }

// server starts a NATS server of the cluster. Its data is a volume, which outlives a kill.
func (f *fleet) server(name string) *testcontainers.DockerContainer {
	f.t.Helper()
	env := map[string]string{"WAGGLE_NATS_NAME": name}
	keys, err := os.ReadFile(filepath.Join(f.secrets, "nats", "nkeys.env"))
	require.NoError(f.t, err)
	for line := range strings.Lines(string(keys)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			env[key] = value
		}
	}
	return f.run(natsImage, name, []string{
		filepath.Join(f.root, "deploy", "nats") + ":/etc/nats:ro", filepath.Join(f.secrets, "routes") + ":/run/secrets:ro",
		f.volume(name) + ":/data",
	}, testcontainers.WithEnv(env), testcontainers.WithCmd("--config", "/etc/nats/cluster.conf"))
}

// role starts a container of Waggle and returns when it is ready.
func (f *fleet) role(role string, ready wait.Strategy, command ...string) *testcontainers.DockerContainer {
	f.t.Helper()
	env := map[string]string{
		"WAGGLE_ADDR": "0.0.0.0:9000", "WAGGLE_NATS": "nats://nats-1:4222,nats://nats-2:4222,nats://nats-3:4222",
		"WAGGLE_NATS_NKEY": "/run/secrets/nkey", "WAGGLE_NATS_BOOTSTRAP": "verify", "WAGGLE_NATS_REPLICAS": "3",
		"WAGGLE_SIGNING_PUBLIC_KEY_FILE": "/run/signing/signing.pub",
	}
	binds := []string{filepath.Join(f.secrets, role) + ":/run/secrets:ro", filepath.Join(f.secrets, "signing") + ":/run/signing:ro"}
	options := []testcontainers.ContainerCustomizer{testcontainers.WithCmd(command...), testcontainers.WithWaitStrategyAndDeadline(maxWait, ready)}
	switch role {
	case "gateway":
		env["WAGGLE_CONFIG"] = "/run/clients/gateway.yaml"
		env["WAGGLE_SIGNING_KEY_FILE"] = "/run/secrets/signing.seed"
		binds = append(binds, filepath.Join(f.secrets, "clients")+":/run/clients:ro")
		options = append(options, testcontainers.WithExposedPorts(gatewayPort))
	case "session":
		env["WAGGLE_SESSION_STATE_KEY_FILE"] = "/run/secrets/state.key"
	case "worker", "tools":
		env["WAGGLE_CONFIG"] = "/run/secrets/" + role + ".yaml"
	}
	switch role {
	case "worker":
		env["WAGGLE_MODEL"] = "demo"
	case "tools":
		binds = append(binds, f.volume(role)+":/workspace")
	}
	return f.run(waggleImage, role, binds, append(options, testcontainers.WithEnv(env))...)
}

// healthy waits until the container's own check succeeds.
func (f *fleet) healthy(c *testcontainers.DockerContainer) {
	f.t.Helper()
	require.NoError(f.t, wait.ForHealthCheck().WithStartupTimeout(maxWait).WaitUntilReady(within(f.t), c))
}
