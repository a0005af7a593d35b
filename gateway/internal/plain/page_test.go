package plain_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:generate go test -count=1 -run ^TestThePageHasTheFiles$ -update .

const page = "../../../docs/how-to-add-a-dialect.md"

// TestThePageHasTheFiles: the code of the page is that of the package, file by file. -update writes it.
func TestThePageHasTheFiles(t *testing.T) {
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	shown := map[string]bool{}
	block := regexp.MustCompile("(?s)`gateway/internal/plain/([a-z_.]+)`:\n\n```(go|json)\n(.*?)```\n")
	text := block.ReplaceAllStringFunc(string(raw), func(found string) string {
		m := block.FindStringSubmatch(found)
		shown[m[1]] = true
		file, err := os.ReadFile(m[1])
		require.NoError(t, err)
		return strings.Replace(found, m[3], string(file), 1)
	})
	for _, name := range []string{"wire.go", "schema.json", "plain.go", "plain_test.go"} {
		require.True(t, shown[name], "the page does not show %s", name)
	}
	if f := flag.Lookup("update"); f.Value.String() == "true" {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
		return
	}
	require.Equal(t, text, string(raw), "the page is stale; run make generate")
}
