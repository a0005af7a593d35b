package repocheck

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// sentence matches a log message that is a statement instead of verb and object.
var sentence = regexp.MustCompile(`^\S+$|^\w+ing\b|^([A-Z]|(a|an|the|this|these|what|who|how|no|there|it|some|of|in)\b)|\b(is|are|was|were|has|have|does|do|did|cannot|could|will)\b`)

// An operator searches a log for verb and object: "drop queued messages".
func TestLogMessagesAreVerbAndObject(t *testing.T) {
	require.Regexp(t, sentence, "a socket ended")
	require.Regexp(t, sentence, "queue is full")
	require.Regexp(t, sentence, "stopping part")
	require.Regexp(t, sentence, "stopped")
	require.NotRegexp(t, sentence, "drop queued messages")
	messages := 0
	eachGoFile(t, func(name string, f *ast.File, at func(ast.Node) int) {
		if strings.HasSuffix(name, "_test.go") {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			lit, isText := call.Args[0].(*ast.BasicLit)
			if !ok || !isText || lit.Kind != token.STRING || fun.Sel.Name != "Msg" && fun.Sel.Name != "Msgf" {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			messages++
			if sentence.MatchString(text) || excluded(text) != "" {
				t.Errorf("%s:%d: %q: say verb and object, as in %q", name, at(lit), text, "drop queued messages")
			}
			return true
		})
	})
	require.Greater(t, messages, 100)
}

// eachGoFile calls f with the parsed Go files of all modules, by their paths in the repository.
func eachGoFile(t *testing.T, f func(name string, file *ast.File, line func(ast.Node) int)) {
	t.Helper()
	files, err := goFiles()
	require.NoError(t, err)
	for _, g := range files {
		f(g.name, g.file, func(n ast.Node) int { return fileSet.Position(n.Pos()).Line })
	}
}

// goFile is a parsed file of the repository, with its path below the top.
type goFile struct {
	name string
	file *ast.File
}

// fileSet has the positions of goFiles.
var fileSet = token.NewFileSet()

// goFiles returns the files of all modules. It parses them once for all tests.
var goFiles = sync.OnceValues(func() (all []goFile, err error) {
	top, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	dirs, err := moduleFolders()
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		err = errors.Join(err, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && path != dir && slices.Contains(dirs, path) {
				return filepath.SkipDir // a module within this one
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			file, err := parser.ParseFile(fileSet, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(top, path)
			all = append(all, goFile{name, file})
			return err
		}))
	}
	return all, err
})
