package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/proof"
)

// TestEveryEventHasItsTest: the list of events and tests has no empty place, names
// tests that there are, and is what the documentation shows. That the tests show
// their events, they check themselves.
func TestEveryEventHasItsTest(t *testing.T) {
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
