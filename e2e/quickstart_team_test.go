package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestATeamInTwoCommands runs the commands of the tour, with the example that it names.
func TestATeamInTwoCommands(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/TOUR.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "## A team of agents\n")
	require.True(t, ok)
	found := regexp.MustCompile(`(?m)^bin/waggle teams run -f (\S+) "(.*)"\nbin/waggle teams list$`).FindStringSubmatch(section)
	require.NotNil(t, found, "the section begins with two commands")
	p := one.forTenant(t)
	example, err := filepath.Abs(filepath.Join("..", found[1]))
	require.NoError(t, err)
	out := p.waggle("teams", "run", "-f", example, found[2], "--yes")
	require.Contains(t, out, "Lead: Analyst answers: The workspace has 1 file")
	require.Contains(t, out, "Lead: library answers: Reader answers: notes.md has 45 words.")
	require.Contains(t, out, "library/Reader may run workspace_read_file")
	require.Regexp(t, `team_[0-9a-f]{16} +research +IDLE +Lead, Analyst, library`, p.waggle("teams", "list"))
}
