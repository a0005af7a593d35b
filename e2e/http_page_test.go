package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheWalkWithCurl runs the commands of docs/HTTP.md one after the other, as a reader does.
func TestTheWalkWithCurl(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl", "jq"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err, "the page needs it")
	}
	page, err := os.ReadFile("../docs/HTTP.md")
	require.NoError(t, err)
	_, addr := up(t, nil)
	script := "set -eum\n"
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.GreaterOrEqual(t, len(blocks), 6)
	for _, block := range blocks {
		script += block[1]
	}
	require.Contains(t, script, "127.0.0.1:9000")
	file := filepath.Join(t.TempDir(), "walk.sh")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(script, "127.0.0.1:9000", addr)), 0o600))
	out, err := exec.CommandContext(t.Context(), "bash", file).CombinedOutput()
	text := string(out)
	require.NoError(t, err, text)
	for _, want := range []string{`"subject":"anonymous"`, `"message_id":"first"`, "event: input.requested", `"scope": "plan"`, "Welcome to your workspace"} {
		require.Contains(t, text, want)
	}
}
