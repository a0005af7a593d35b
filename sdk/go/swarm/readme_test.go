package swarm_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheAgentOfTheReadme: the README shows lines of the example, which e2e runs.
func TestTheAgentOfTheReadme(t *testing.T) {
	page, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(page), "```go\n")
	require.True(t, ok, "the README has an example")
	code, _, _ = strings.Cut(code, "```")
	source, err := os.ReadFile("../examples/shouter/main.go")
	require.NoError(t, err)
	for line := range strings.SplitSeq(strings.TrimSpace(code), "\n") {
		require.Contains(t, string(source), line+"\n")
	}
}
