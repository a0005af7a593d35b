package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// subjectLiteral matches text that begins like a subject of Waggle.
var subjectLiteral = regexp.MustCompile(`^(evt|live|cmd|timer|rpc|dead)\.[A-Za-z0-9_*>%-]`)

// mayWrite are the folders whose code may write out subjects: the package that builds them, programs that stand for others
// that know only NATS, and hostile test data.
var mayWrite = []string{"proto-schemas/subject/", "proto-schemas/internal/hostile/", "e2e/"}

// Only proto-schemas/subject builds subjects, so that no unchecked text ever becomes part of one. Tests may write them out:
// subjects are the contract with other programs.
func TestSubjectsAreBuiltInOnePlace(t *testing.T) {
	files := 0
	for _, dir := range modules(t) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") ||
				strings.HasSuffix(path, "_test.go") || exempt(t, path) {
				return err
			}
			files++
			for _, found := range subjectsIn(t, path) {
				t.Errorf("%s: use package subject", found)
			}
			return nil
		})
		require.NoError(t, err)
	}
	require.Greater(t, files, 50)
}

func exempt(t *testing.T, path string) bool {
	t.Helper()
	rel, err := filepath.Rel(top(t), path)
	require.NoError(t, err)
	for _, prefix := range mayWrite {
		if strings.HasPrefix(filepath.ToSlash(rel), prefix) {
			return true
		}
	}
	return false
}

func subjectsIn(t *testing.T, path string) []string {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field: // a struct tag
			return n.Tag == nil
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && subjectLiteral.MatchString(text) {
				out = append(out, set.Position(n.Pos()).String()+": "+text)
			}
		}
		return true
	})
	return out
}
