package plain_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const page = "../../../docs/how-to-add-a-protocol.md"

// maxPage is the most lines that the way to a new protocol takes to read.
const maxPage = 150

// TestThePageShowsThisPackage: each excerpt of the page is in the file that it names, and the page fits its bound.
func TestThePageShowsThisPackage(t *testing.T) {
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(raw), "\n"), maxPage)
	excerpts := regexp.MustCompile("(?s)`gateway/internal/plain/([a-z_.]+)`:\n\n```go\n(.*?)```\n").FindAllStringSubmatch(string(raw), -1)
	require.Len(t, excerpts, 5)
	for _, m := range excerpts {
		file, err := os.ReadFile(m[1])
		require.NoError(t, err)
		require.Contains(t, string(file), m[2], "%s has changed", m[1])
	}
}
