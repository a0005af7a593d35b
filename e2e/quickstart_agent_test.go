package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// TestAChatUsesAnAgentOfOnesOwn: the tour's agent, started as the tour says, does a step
// of a chat; then it does a task of a client.
func TestAChatUsesAnAgentOfOnesOwn(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/TOUR.md")
	require.NoError(t, err)
	run := regexp.MustCompile(`(?m)^go run \./(\S+)\nbin/waggle chat --plan --yes "(.*)"$`).FindStringSubmatch(string(page))
	require.NotNil(t, run, "the tour starts an agent and asks for it")
	program := filepath.Join(t.TempDir(), "agent")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../"+run[1]).CombinedOutput()
	require.NoError(t, err, string(out))

	_, addr := up(t, nil)
	p := place{t: t, addr: addr}
	process.Start(t, process.Options{Name: "agent", Program: program, Env: []string{"WAGGLE_URL=ws://" + addr}})
	process.Eventually(t, "the agent is listed", func() bool { return strings.Contains(p.waggle("agents"), "shouter") })
	require.Contains(t, p.waggle("chat", "--plan", "--yes", run[2]), "GREET THE BEES!")
	require.Contains(t, p.waggle("tasks", "create", "--agent", "shouter", "hello"), "HELLO!")
}
