package e2e_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/waggle-dev/waggle/e2e/harness/proof"
	"github.com/waggle-dev/waggle/proto-schemas/bundle"
	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// TestEveryMessageOfATeamHasItsTest: the list of messages and tests is complete,
// names tests that exist, and equals the page of the documentation. Each test checks that it
// shows its messages. The page names the messages that no part makes.
func TestEveryMessageOfATeamHasItsTest(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	files, err := filepath.Glob("team_*_test.go")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	shownBy := proof.TeamProof()
	in, err := bundle.Messages(team.Schema, "in")
	require.NoError(t, err)
	out, err := bundle.Messages(team.Schema, "out")
	require.NoError(t, err)
	messages := slices.Concat(in, out)
	require.Len(t, messages, len(shownBy)+1, "each has a schema, and %s has one", team.AssistantChunk)
	for _, name := range messages {
		if _, unmade := proof.TeamUnmade[name]; !unmade {
			require.True(t, tests[shownBy[name]], "%s has no test, or %q is none", name, shownBy[name])
		}
	}
	const page = "../docs/generated/team-messages.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	want := proof.TeamPage(string(text))
	if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o600))
		return
	}
	require.Equal(t, want, string(text), "run make generate")
	require.Equal(t, want, proof.TeamPage(want), "what is there already is kept")
}
