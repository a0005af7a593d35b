package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tangled are the packages in which files still use each other both ways. The list may only
// become shorter.
var tangled = []string{
	"cmd/waggle/config",
	"cmd/waggle/process",
	"e2e/chaos/fault",
	"e2e/chaos/load",
	"e2e/chaos/site",
	"e2e/flows",
	"internal/eventlog",
	"sdk/go/swarm",
	"services/assignment",
	"services/conversation",
	"services/model/demo",
	"services/team",
	"services/teamwork",
	"services/worker",
	"services/worker/builtin",
}

// TestFilesDependOneWay: the files of a package can be put in an order in which each uses only
// files before it. A file that needs its caller's fields is in the wrong place.
func TestFilesDependOneWay(t *testing.T) {
	t.Parallel()
	var found []string
	for _, p := range list(t) {
		path := strings.TrimPrefix(p.ImportPath, root)
		circles := circlesOf(t, p)
		if len(circles) == 0 {
			continue
		}
		found = append(found, path)
		if !slices.Contains(tangled, path) {
			t.Errorf("%s: these files use each other; move declarations so that they depend one way: %v", path, circles)
		}
	}
	for _, path := range tangled {
		if !slices.Contains(found, path) {
			t.Errorf("%s: the files depend one way now: remove the package from the list", path)
		}
	}
}

// TestACircleOfFilesIsFound: the check sees a method that is called from below its file.
func TestACircleOfFilesIsFound(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range map[string]string{
		"a.go": `package p; type T struct{ n int }; func (t T) up() int { return t.down() }`,
		"b.go": `package p; func (t T) down() int { return other.Thing(t.n) }`,
		"c.go": `package p; func use(t T) { t.up() }`,
	} {
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	require.Equal(t, [][]string{{"a.go", "b.go"}}, circles(uses(fset, files)))
}

// circlesOf returns the groups of files of a package that use each other.
func circlesOf(t *testing.T, p pkg) [][]string {
	t.Helper()
	parsed, err := goFiles()
	require.NoError(t, err)
	var files []*ast.File
	for _, f := range parsed {
		path := filepath.Join(top(t), f.name)
		if filepath.Dir(path) == p.Dir && slices.Contains(p.GoFiles, filepath.Base(path)) {
			files = append(files, f.file)
		}
	}
	require.Len(t, files, len(p.GoFiles), p.ImportPath)
	return circles(uses(fileSet, files))
}

// strangers imports every package as an empty one: only what a package declares itself counts
// here.
type strangers struct{}

func (strangers) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, filepath.Base(path))
	p.MarkComplete()
	return p, nil
}

var _ types.Importer = strangers{}

// uses returns, by the name of a file, the other files whose declarations, fields and methods
// it names.
func uses(fset *token.FileSet, files []*ast.File) map[string]map[string]bool {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: strangers{}, Error: func(error) {}} // declarations of other packages are unknown
	_, _ = conf.Check("p", fset, files, info)
	out := map[string]map[string]bool{}
	for id, o := range info.Uses {
		if !o.Pos().IsValid() || o.Pkg() == nil || o.Pkg().Path() != "p" {
			continue
		}
		from, to := filepath.Base(fset.Position(id.Pos()).Filename), filepath.Base(fset.Position(o.Pos()).Filename)
		if from == to {
			continue
		}
		if out[from] == nil {
			out[from] = map[string]bool{}
		}
		out[from][to] = true
	}
	return out
}

// circles returns the groups of files that reach each other.
func circles(uses map[string]map[string]bool) (out [][]string) {
	reach := map[string]map[string]bool{}
	for from := range uses {
		reach[from] = map[string]bool{}
		todo := slices.Collect(maps.Keys(uses[from]))
		for len(todo) > 0 {
			to := todo[0]
			todo = todo[1:]
			if !reach[from][to] {
				reach[from][to] = true
				todo = append(todo, slices.Collect(maps.Keys(uses[to]))...)
			}
		}
	}
	done := map[string]bool{}
	for _, from := range slices.Sorted(maps.Keys(uses)) {
		if done[from] || !reach[from][from] {
			continue
		}
		var group []string
		for to := range reach[from] {
			if reach[to][from] {
				group = append(group, to)
				done[to] = true
			}
		}
		slices.Sort(group)
		out = append(out, group)
	}
	return out
}
