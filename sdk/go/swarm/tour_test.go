package swarm_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheAgentOfTheTour: the tour shows lines of the example, which e2e runs.
func TestTheAgentOfTheTour(t *testing.T) {
	page, err := os.ReadFile("../../../docs/TOUR.md")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(page), "```go\n")
	require.True(t, ok, "the tour has an example")
	code, _, _ = strings.Cut(code, "```")
	source, err := os.ReadFile("../examples/shouter/main.go")
	require.NoError(t, err)
	for line := range strings.SplitSeq(strings.TrimSpace(code), "\n") {
		require.Contains(t, string(source), line+"\n")
	}
}
