package swarm_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/sdk/go/swarm"
)

// shouter is the agent of the README.
func shouter(ctx context.Context, url string) error {
	agent, err := swarm.NewAgent(
		swarm.AgentOptions{Options: swarm.Options{URL: url}, Name: "shouter", Capabilities: []string{"shouting"}},
		func(_ context.Context, t *swarm.Task) (any, error) {
			return strings.ToUpper(string(t.Data)), nil
		})
	if err != nil {
		return err
	}
	return agent.Run(ctx) // until ctx ends; it comes back by itself
}

// TestTheAgentOfTheReadme: it is the code of shouter, and it works.
func TestTheAgentOfTheReadme(t *testing.T) {
	page, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	_, code, ok := strings.Cut(string(page), "```go\n")
	require.True(t, ok, "the README has an example")
	code, _, _ = strings.Cut(code, "```")
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	for line := range strings.SplitSeq(strings.TrimSpace(code), "\n") {
		require.Contains(t, string(source), "\t"+line+"\n")
	}
	ctx, stop := context.WithCancel(t.Context())
	got := make(chan any, 1)
	url := exampleAgents(func(result any) {
		got <- result
		stop()
	})
	require.NoError(t, shouter(ctx, url))
	require.Equal(t, `{"TEXT":"HELLO"}`, <-got)
}
