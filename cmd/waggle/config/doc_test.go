package config

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Validate accepts the example of the reference page.
func TestTheDocumentedExampleIsValid(t *testing.T) {
	page, err := os.ReadFile("../../../docs/CONFIGURATION.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(page), "```yaml\n")
	require.True(t, ok)
	text, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	l, err := Load(Input{File: write(t, text)})
	require.NoError(t, err)
	require.NoError(t, l.Validate(everything))
	require.Equal(t, "alice", l.Auth.APIKeys[0].Subject)
}
