//go:build compose

package compose_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// maxWait bounds one step of Compose: a service that ends waits up to 45 s for its work.
const maxWait = 3 * time.Minute

// fleet is docker-compose.yml, started in a folder of its own with secrets of its own.
type fleet struct {
	t     *testing.T
	root  string // of the repository
	dir   string
	env   []string
	tool  []string // docker compose, or docker-compose
	addr  string   // of the load balancer
	token string
}

// tools returns every Compose of the machine: the plugin of docker first, as the Makefile
// prefers it, and the program that Debian has.
func tools(t *testing.T) [][]string {
	t.Helper()
	var out [][]string
	for _, tool := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		cmd := exec.CommandContext(t.Context(), tool[0], append(tool[1:len(tool):len(tool)], "version", "--short")...)
		if version, err := cmd.Output(); err == nil {
			t.Logf("%s is Compose %s", strings.Join(tool, " "), strings.TrimSpace(string(version)))
			out = append(out, tool)
		}
	}
	require.NotEmpty(t, out, "there is no Compose")
	return out
}

// prepare makes what a fleet needs besides its files. env is what its .env would hold.
func prepare(t *testing.T, tool []string, env ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), addr: freeport.Addr(t), tool: tool}
	port := port(t, f.addr)
	f.env = append(os.Environ(), "WAGGLE_PORT="+port, "COMPOSE_PROJECT_NAME=waggle-test-"+port, "COMPOSE="+strings.Join(tool, " "))
	f.env = append(f.env, env...)
	for name, image := range map[string]string{
		"WAGGLE_LB_IMAGE": "waggle-caddy:dev", "WAGGLE_PROMETHEUS_IMAGE": "waggle-prometheus:dev", "WAGGLE_OTEL_IMAGE": "waggle-otel:dev",
	} {
		if os.Getenv(name) == "" {
			f.env = append(f.env, name+"="+image)
		}
	}
	var err error
	f.root, err = filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	return f
}

// start starts the fleet as `make up` does, from images that are there already.
func start(t *testing.T, tool []string, env ...string) *fleet {
	t.Helper()
	f := prepare(t, tool, env...)
	require.NoError(t, os.CopyFS(filepath.Join(f.dir, "deploy"), os.DirFS(filepath.Join(f.root, "deploy"))))
	file, err := os.ReadFile(filepath.Join(f.root, "docker-compose.yml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "docker-compose.yml"), file, 0o600))
	f.run(filepath.Join(f.root, "scripts", "secrets.sh"), process.Binary(t))
	token, err := os.ReadFile(filepath.Join(f.dir, "secrets", "api.key"))
	require.NoError(t, err)
	f.token = string(token)
	t.Cleanup(f.end)
	f.up()
	return f
}

// up starts the fleet and waits until a gateway can be reached: not every Compose waits
// until the load balancer listens.
func (f *fleet) up() {
	f.t.Helper()
	f.compose("up", "-d")
	process.Eventually(f.t, "the load balancer answers", func() bool { return process.Up(f.addr) })
}

func (f *fleet) end() {
	if f.t.Failed() {
		f.t.Logf("%s\n%s", f.compose("ps"), f.compose("logs", "--no-color", "--tail=40"))
	}
	// Compose ends the services of a profile only if the command names the profile.
	f.compose("--profile", "observability", "--profile", "grafana", "down", "-v", "--remove-orphans", "--timeout", "5")
}

// run runs a program in the fleet's folder and returns what it prints.
func (f *fleet) run(name string, args ...string) string {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = f.dir, f.env, &out, &out
	require.NoError(f.t, cmd.Run(), "%s %s\n%s", name, args, &out)
	return strings.TrimSpace(out.String())
}

func (f *fleet) compose(args ...string) string {
	f.t.Helper()
	return f.run(f.tool[0], append(f.tool[1:len(f.tool):len(f.tool)], args...)...)
}

// containers returns the ids of the running containers of a service.
func (f *fleet) containers(service string) []string {
	f.t.Helper()
	return strings.Fields(f.compose("ps", "-q", service))
}

// inspect returns what the engine says of a container.
func (f *fleet) inspect(id, format string) string {
	f.t.Helper()
	return f.run("docker", "inspect", "-f", format, id)
}

// healthy waits until the container is well again.
func (f *fleet) healthy(id string) {
	f.t.Helper()
	process.Eventually(f.t, "the container is healthy", func() bool {
		state := f.inspect(id, "{{if .State.Health}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}")
		return state == "healthy" || state == "running"
	})
}

// port returns the port of an address.
func port(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	return port
}

func (f *fleet) url(path string) string { return fmt.Sprintf("ws://%s%s", f.addr, path) }
