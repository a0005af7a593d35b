//go:build compose

package compose_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/e2e/harness/verify"
)

// TestOneCommandStartsTheFleetWithoutARegistry: a fresh clone, `make up LOCAL=1`, and the
// next steps of the README. No command names an image, and none
// may be pulled.
func TestOneCommandStartsTheFleetWithoutARegistry(t *testing.T) {
	f := prepare(t, tools(t)[0])
	f.env = without(f.env, "WAGGLE_LB_IMAGE=", "WAGGLE_PROMETHEUS_IMAGE=", "WAGGLE_OTEL_IMAGE=")
	f.run("git", "clone", "--quiet", "--no-hardlinks", f.root, f.dir)
	f.run("sh", "-c", `cd "$0" && git diff --binary HEAD | git -C "$1" apply --allow-empty && git ls-files -o --exclude-standard -z | xargs -0 -r cp --parents -t "$1"`, f.root, f.dir)
	require.NoError(t, os.MkdirAll(filepath.Join(f.dir, ".cache"), 0o750))
	require.NoError(t, os.Symlink(filepath.Join(f.root, ".cache", "bin"), filepath.Join(f.dir, ".cache", "bin"))) // tools that take minutes to build
	t.Cleanup(f.end)

	f.run("make", "up", "LOCAL=1")
	require.True(t, process.Up(f.addr), "make up ends when the fleet is ready")
	token, err := os.ReadFile(filepath.Join(f.dir, "secrets", "api.key"))
	require.NoError(t, err)
	f.token = string(token)
	d := f.talk(0)
	d.Once()
	f.more([]*verify.Conversation{d})
	f.run("make", "observe", "LOCAL=1")
	require.NotEmpty(t, f.containers("prometheus"))
	require.NotEmpty(t, f.containers("otel"))
	require.Empty(t, f.containers("grafana"), "its image cannot be built here")
	require.Len(t, f.containers("gateway"), 4, "who watches the fleet does not shrink it")
	require.NotContains(t, f.compose("run", "--rm", "-T", "operator", "doctor"), "WARN", "a new fleet has nothing to mend")
	d.Once()

	before, err := os.ReadFile(filepath.Join(f.dir, ".env"))
	require.NoError(t, err)
	f.run("make", "up", "LOCAL=1")
	after, err := os.ReadFile(filepath.Join(f.dir, ".env"))
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), ".env is written once")
	f.run("make", "down")
	require.Empty(t, f.containers("lb"))
}

// without returns the variables that begin with none of the prefixes.
func without(env []string, prefixes ...string) (out []string) {
	for _, e := range env {
		keep := true
		for _, p := range prefixes {
			keep = keep && !strings.HasPrefix(e, p)
		}
		if keep {
			out = append(out, e)
		}
	}
	return out
}

// fails runs a program that must not succeed and returns what it prints.
func (f *fleet) fails(name string, args ...string) string {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), name, args...)
	cmd.Dir, cmd.Env = f.dir, f.env
	out, err := cmd.CombinedOutput()
	require.Error(f.t, err, "%s %s\n%s", name, args, out)
	return string(out)
}
