package repocheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pages are the documents whose commands and links must exist.
var pages = []string{
	"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md",
	"docs/OPERATIONS.md", "docs/SECURITY.md", "docs/CONFIGURATION.md", "docs/PROTOCOL-ORBIT.md", "docs/PROTOCOL-MYAGENT.md",
	"docs/PROTOCOL-ASP.md", "docs/PROTOCOL-TEAM.md",
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(top(t), name))
	require.NoError(t, err)
	return string(b)
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, p), -1) {
			_, err := os.Stat(filepath.Join(top(t), filepath.Dir(p), m[1]))
			require.NoError(t, err, p)
		}
	}
}

var makeTarget = regexp.MustCompile("(?m)(?:^|`)make ([a-z0-9-]+)")

func TestMakeTargetsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	found := 0
	for _, p := range pages {
		for _, m := range makeTarget.FindAllStringSubmatch(read(t, p), -1) {
			found++
			require.Contains(t, makefile, "\n"+m[1]+":", p)
		}
	}
	require.Positive(t, found)
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(makefile, -1) {
		require.Regexp(t, `(?m)^`+m[1]+`:.* ## `, makefile, "target %s is not explained", m[1])
	}
}

// The tests that the architecture page names as the holders of a promise exist.
func TestNamedTestsExist(t *testing.T) {
	exists := map[string]bool{}
	for _, dir := range modules(t) {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				exists[m[1]] = true
			}
			return err
		})
		require.NoError(t, err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(read(t, "ARCHITECTURE.md"), -1)
	require.Greater(t, len(named), 10)
	for _, m := range named {
		require.True(t, exists[m[1]], "ARCHITECTURE.md names %s, which does not exist", m[1])
	}
}

// The boxes of the architecture page are real paths.
func TestNamedPathsExist(t *testing.T) {
	paths := regexp.MustCompile(`(?:^|[ ">`+"`"+`])((?:cmd|gateway|internal|services|proto-schemas|scripts)/[a-z*/-]+)`).
		FindAllStringSubmatch(read(t, "ARCHITECTURE.md"), -1)
	require.Greater(t, len(paths), 10)
	for _, m := range paths {
		found, err := filepath.Glob(filepath.Join(top(t), m[1]))
		require.NoError(t, err)
		require.NotEmpty(t, found, m[1])
	}
}
