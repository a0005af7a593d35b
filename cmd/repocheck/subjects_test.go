package repocheck

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
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
	eachGoFile(t, func(name string, f *ast.File, line func(ast.Node) int) {
		if strings.HasSuffix(name, "_test.go") || slices.ContainsFunc(mayWrite, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			return
		}
		files++
		for _, found := range subjectsIn(f) {
			t.Errorf("%s:%d: %s: use package subject", name, line(found), found.Value)
		}
	})
	require.Greater(t, files, 50)
}

// subjectsIn returns the literals of a file that begin like a subject.
func subjectsIn(file *ast.File) (out []*ast.BasicLit) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field: // a struct tag
			return n.Tag == nil
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && subjectLiteral.MatchString(text) {
				out = append(out, n)
			}
		}
		return true
	})
	return out
}
