package repocheck

import (
	"go/ast"
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
	"CHANGELOG.md", "docs/TOUR.md", "docs/UPGRADING.md", "docs/CONSOLE.md", "docs/HTTP.md", "docs/MODELS.md", "docs/OPERATIONS.md", "docs/SCALE.md", "docs/SECURITY.md", "docs/CONFIGURATION.md", "docs/PROTOCOL-ORBIT.md", "docs/PROTOCOL-MYAGENT.md",
	"docs/PROTOCOL-ASP.md", "docs/PROTOCOL-TEAM.md", "docs/PROTOCOL-EVENTS.md", "docs/PROTOCOL-AGUI.md", "docs/PROTOCOL-AISDK.md", "docs/GLOSSARY.md",
}

// sitePages are the pages of docs/site that people write.
func sitePages(t *testing.T) (out []string) {
	t.Helper()
	site := filepath.Join(top(t), "docs", "site")
	err := filepath.WalkDir(site, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		name, err := filepath.Rel(top(t), path)
		if err == nil && !strings.HasPrefix(read(t, name), "<!-- Generated") {
			out = append(out, filepath.ToSlash(name))
		}
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, out)
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(top(t), name))
	require.NoError(t, err)
	return string(b)
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	for _, p := range append(append(decisions(t), decisionsIndex), pages...) {
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
	for _, p := range append(sitePages(t), pages...) {
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

// The tests that the architecture page, the decisions and the security page name as the holders of a promise exist,
// and each threat that the security page lists has one.
func TestNamedTestsExist(t *testing.T) {
	exists := map[string]bool{}
	eachGoFile(t, func(name string, file *ast.File, _ func(ast.Node) int) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasSuffix(name, "_test.go") && strings.HasPrefix(f.Name.Name, "Test") {
				exists[f.Name.Name] = true
			}
		}
	})
	const security = "docs/SECURITY.md"
	threats := regexp.MustCompile(`(?m)^\| \d \| .*$`).FindAllString(read(t, security), -1)
	require.Greater(t, len(threats), 40)
	for _, threat := range threats {
		require.Regexp(t, "`Test\\w+`", threat, "no test holds the measure")
	}
	for _, page := range append(decisions(t), "ARCHITECTURE.md", security) {
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(read(t, page), -1)
		require.True(t, page != "ARCHITECTURE.md" || len(named) > 10)
		for _, m := range named {
			require.True(t, exists[m[1]], "%s names %s, which does not exist", page, m[1])
		}
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

// The README is a page. Its first section names the two commands that a new user needs, and their requirements.
func TestTheReadmeBeginsWithTwoCommands(t *testing.T) {
	readme := read(t, "README.md")
	require.LessOrEqual(t, strings.Count(readme, "\n"), 120, "the rest belongs into docs/TOUR.md")
	_, section, ok := strings.Cut(readme, "\n## ")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	require.Regexp(t, "(?m)^\\| `make run` \\|.* minutes.* MB .* GB ", section)
	require.Regexp(t, "(?m)^\\| `bin/waggle open` \\|", section)
	require.Regexp(t, "(?m)^\\| `make test` \\|.* minutes.* MB .* GB ", read(t, "CONTRIBUTING.md"))
}

var (
	codeSpan = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	quoted   = regexp.MustCompile(`[ (]'([A-Za-z][^']*[a-z])'`)
)

// Operators search their logs for the messages that the operations page quotes. One of
// them is a message of nats-server.
func TestQuotedLogMessagesExist(t *testing.T) {
	var source strings.Builder
	for _, dir := range modules(t) {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			source.Write(text)
			return err
		})
		require.NoError(t, err)
	}
	prose := codeSpan.ReplaceAllString(read(t, "docs/OPERATIONS.md"), "``")
	messages := quoted.FindAllStringSubmatch(strings.Join(strings.Fields(prose), " "), -1)
	require.Greater(t, len(messages), 5)
	for _, m := range messages {
		if m[1] != "Authorization Violation" {
			require.True(t, strings.Contains(source.String(), m[1]), "no message says %q", m[1])
		}
	}
}
