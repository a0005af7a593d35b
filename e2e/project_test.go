package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
	"github.com/waggle-dev/waggle/internal/freeport"
)

// newcomer has the binary on the path and an empty folder.
type newcomer struct {
	t         *testing.T
	dir, addr string
	env       []string
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	bin := t.TempDir()
	require.NoError(t, os.Symlink(process.Binary(t), filepath.Join(bin, "waggle")))
	addr := freeport.Addr(t)
	return &newcomer{t: t, dir: t.TempDir(), addr: addr, env: []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "WAGGLE_URL=ws://" + addr + "/ws", "WAGGLE_HTTP=http://" + addr,
		"WAGGLE_ADDR=" + addr, "WAGGLE_NATS_ADDR=" + freeport.Addr(t), "WAGGLE_TELEMETRY_ADDR=off",
	}}
}

// runs runs a command of a shell in a folder to its end, and returns its output.
func (n *newcomer) runs(dir, command string, env ...string) string {
	n.t.Helper()
	c := exec.CommandContext(n.t.Context(), "sh", "-c", command)
	c.Dir = filepath.Join(n.dir, dir)
	c.Env = append(append(os.Environ(), n.env...), env...)
	out, err := c.CombinedOutput()
	require.NoError(n.t, err, "%s: %s", command, out)
	return string(out)
}

// starts starts a command of a shell in a folder, and waits until Waggle is ready.
func (n *newcomer) starts(dir, command string, env ...string) *process.Process {
	n.t.Helper()
	p := process.Start(n.t, process.Options{
		Name: command, Dir: filepath.Join(n.dir, dir), Env: append(n.env, env...), Program: "/bin/sh", Args: []string{"-c", "exec " + command},
	})
	n.t.Cleanup(func() { // a script ends what it has started
		p.Signal(syscall.SIGTERM)
		select {
		case <-p.Ended():
		case <-time.After(process.MaxWait):
		}
	})
	p.Ready(n.addr)
	return p
}

// TestAFolderOfOnesOwn: "waggle init" writes it, "waggle up" takes its settings and keys, and so do the other commands.
func TestAFolderOfOnesOwn(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	out := n.runs("", "waggle init mine")
	require.Contains(t, out, "cd mine && waggle up")
	settings := filepath.Join(n.dir, "mine", "waggle.yaml")
	text, err := os.ReadFile(settings)
	require.NoError(t, err)
	// A setting and a secret that show that both files are read.
	require.NoError(t, os.WriteFile(settings, []byte(strings.Replace(string(text), "#gateway:\n#  allowed_origins:", "gateway:\n  allowed_origins:", 1)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, "mine", ".env"), []byte("OPENAI_API_KEY=sk-of-this-folder\n"), 0o600))
	shown := n.runs("mine", "waggle up --print-config")
	require.Contains(t, shown, "http://127.0.0.1:5173")
	require.Contains(t, shown, "api_key: '[redacted]'")
	require.NotContains(t, shown, "sk-of-this-folder")

	up := n.starts("mine", "waggle up")
	require.Contains(t, up.Output(), "settings   waggle.yaml")
	require.Contains(t, n.runs("mine", `waggle chat "which files are in the workspace?"`), "notes.md")
	again := exec.CommandContext(t.Context(), process.Binary(t), "init", "mine")
	again.Dir = n.dir
	told, err := again.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(told), "nothing was written")
}

// TestTemplates: what each template's page says works in an empty folder. Those that need Node or Python's packages are tested
// with the SDKs.
func TestTemplates(t *testing.T) {
	t.Parallel()
	t.Run("research-team", func(t *testing.T) {
		t.Parallel()
		n := newNewcomer(t)
		n.starts("", "waggle up")
		n.runs("", "waggle new team --template research-team")
		require.Contains(t, n.runs("team", `./run.sh "ask Analyst which files are in the workspace"`), "notes.md")
	})
	t.Run("nightly-report", func(t *testing.T) {
		t.Parallel()
		n := newNewcomer(t)
		n.starts("", "waggle up")
		n.runs("", "waggle new report --template nightly-report")
		file := strings.TrimSpace(n.runs("report", "./report.sh"))
		first, err := os.ReadFile(filepath.Join(n.dir, "report", file))
		require.NoError(t, err)
		require.Contains(t, string(first), "Welcome to your workspace")
		require.Equal(t, file, strings.TrimSpace(n.runs("report", "./report.sh")), "the same report")
		again, err := os.ReadFile(filepath.Join(n.dir, "report", file))
		require.NoError(t, err)
		require.Equal(t, first, again)
		session := "report-" + strings.TrimSuffix(filepath.Base(file), ".md")
		log := n.runs("", `curl -sS "$WAGGLE_HTTP/api/v1/logs/session/`+session+`/events?types=message.received"`)
		require.Equal(t, 1, strings.Count(log, `"message.received"`), "asked once")
	})
	t.Run("mcp-tools", func(t *testing.T) {
		t.Parallel()
		n := newNewcomer(t)
		n.runs("", "waggle new tools --template mcp-tools")
		_, port, _ := strings.Cut(freeport.Addr(t), ":")
		n.runs("tools", "sed -i s/8700/"+port+"/ waggle.yaml")
		p := n.starts("tools", "./run.sh", "TICKETS_PORT="+port)
		require.Contains(t, n.runs("", `waggle chat 'use tickets_list_tickets {}'`), "The bees want a bigger hive.")
		require.Contains(t, n.runs("", `echo y | waggle chat 'use tickets_close_ticket {"number": 2}'`), "Ticket 2 is closed.")
		require.NotContains(t, n.runs("", `waggle chat 'use tickets_list_tickets {}'`), "bees")
		require.NoError(t, p.Terminate())
	})
}
