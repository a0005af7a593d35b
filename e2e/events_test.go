package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/proof"
)

// TestEveryEventHasItsTest: the list of events and tests is complete, names
// tests that exist, and equals the page of the documentation. Each test checks that it
// shows its events.
func TestEveryEventHasItsTest(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	for _, e := range proof.Events() {
		require.True(t, tests[proof.Proof[e]], "%s has no test, or %q is none", e, proof.Proof[e])
	}
	require.Len(t, proof.Proof, len(proof.Events()))
	page, err := os.ReadFile("../docs/generated/myagent-events.md")
	require.NoError(t, err)
	require.Equal(t, proof.EventPage(), string(page), "run make generate")
}
