package repocheck

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	decisionsDir   = "docs/decisions"
	decisionsIndex = decisionsDir + "/README.md"
	glossary       = "docs/GLOSSARY.md"

	// onePage is the number of lines of the architecture that a person reads in one go.
	onePage = 90
)

// decisions returns the pages of all decisions in order, without their index.
func decisions(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(top(t), decisionsDir))
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		if name := decisionsDir + "/" + e.Name(); name != decisionsIndex {
			out = append(out, name)
		}
	}
	require.NotEmpty(t, out)
	return out
}

// backticked matches a path of the repository: a folder at the top, alone or with a path below it.
var backticked = regexp.MustCompile("`((?:cmd|deploy|docs|e2e|gateway|internal|proto-schemas|scripts|sdk|services|\\.ci)(?:/[^` ]*)?|[A-Z]+\\.md)`")

func TestPathsOfGlossaryAndDecisionsExist(t *testing.T) {
	for _, page := range append(decisions(t), decisionsIndex, glossary) {
		for _, m := range backticked.FindAllStringSubmatch(read(t, page), -1) {
			_, err := os.Stat(filepath.Join(top(t), m[1]))
			require.NoError(t, err, page)
		}
	}
	require.Greater(t, len(backticked.FindAllString(read(t, glossary), -1)), 50)
}

// decisionHead matches a page: its number, its title and its status.
var decisionHead = regexp.MustCompile(`(?s)^# (\d+)\. ([^\n]+)\n\n- Date: \d{4}-\d\d-\d\d\n- Status: (Accepted|Superseded by \d+|Withdrawn)\n` +
	`\n## Context\n\n.+\n\n## Decision\n\n.+\n\n## Consequence\n\n.+`)

func TestDecisionsAreNumberedAndListed(t *testing.T) {
	index := read(t, decisionsIndex)
	pages := decisions(t)
	numbers := map[string]bool{}
	for _, page := range pages {
		name := filepath.Base(page)
		require.Regexp(t, `^\d{4}-[a-z0-9]+(-[a-z0-9]+)*\.md$`, name)
		number := name[:4]
		require.False(t, numbers[number], "two decisions have the number %s", number)
		numbers[number] = true
		head := decisionHead.FindStringSubmatch(read(t, page))
		require.NotNil(t, head, "%s has no title, date, status, context, decision and consequence", page)
		require.Equal(t, strings.TrimLeft(number, "0"), head[1], page)
		row := fmt.Sprintf("| %s | [%s](%s) | %s |\n", number, head[2], name, head[3])
		require.Equal(t, 1, strings.Count(index, row), "%s lists %s once", decisionsIndex, name)
	}
	require.Equal(t, len(pages), strings.Count(index, "]("+"0"), "%s lists decisions that do not exist", decisionsIndex)
}

func TestTheArchitectureIsOnePage(t *testing.T) {
	require.LessOrEqual(t, strings.Count(read(t, "ARCHITECTURE.md"), "\n"), onePage, "reasons belong into %s", decisionsDir)
}
