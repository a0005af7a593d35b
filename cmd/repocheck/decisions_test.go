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
	onePage = 110
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

func TestDecisionsAreNumberedAndListed(t *testing.T) {
	index := read(t, decisionsIndex)
	pages := decisions(t)
	for i, page := range pages {
		name := filepath.Base(page)
		require.Regexp(t, fmt.Sprintf(`^%04d-[a-z0-9]+(-[a-z0-9]+)*\.md$`, i+1), name, "a number is missing, doubled or out of form")
		title, rest, ok := strings.Cut(read(t, page), "\n\n## Context\n\n")
		require.True(t, ok, page)
		require.Regexp(t, `(?s)\n\n## Decision\n\n.+\n\n## Consequence\n\n.+`, rest, page)
		title, ok = strings.CutPrefix(title, fmt.Sprintf("# %d. ", i+1))
		require.True(t, ok, page)
		require.Equal(t, 1, strings.Count(index, fmt.Sprintf("| %04d | [%s](%s) |\n", i+1, title, name)), "%s lists %s once", decisionsIndex, name)
	}
	require.Equal(t, len(pages), strings.Count(index, "]("+"0"), "%s lists decisions that do not exist", decisionsIndex)
}

func TestTheArchitectureIsOnePage(t *testing.T) {
	require.LessOrEqual(t, strings.Count(read(t, "ARCHITECTURE.md"), "\n"), onePage, "reasons belong into %s", decisionsDir)
}
