package dialecttest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "github.com/waggle-dev/waggle/"

// eventData is the package that decodes the data of events, and jsonLibrary what it is made of.
const (
	eventData   = root + "internal/eventdata"
	jsonLibrary = "github.com/go-json-experiment/json"
)

// impure are the packages of the standard library through which a codec could reach
// the world, the clock of the machine or another goroutine.
var impure = []string{
	"context", "crypto/rand", "io/fs", "io/ioutil", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http",
	"os", "os/exec", "os/signal", "path/filepath", "plugin", "reflect", "runtime", "sync", "sync/atomic", "syscall", "unsafe",
}

// clock are the functions of package time that are not arithmetic.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// pure checks that the codec imports nothing but the contract and the harmless part
// of the standard library, starts no goroutine, reads no clock and names no service.
func (c *checker) pure(t *testing.T) {
	deps := goList(t, "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", c.Package)
	checked := []string{c.Package, root + "gateway/dialect"}
	all := strings.Fields(deps)
	for _, dep := range all {
		part := dep == root+"gateway/internal/strict" || dep == root+"gateway/internal/torn" || dep == root+"gateway/narrate" // as pure as the dialects that share it
		reads := strings.HasPrefix(dep, jsonLibrary) && slices.Contains(all, eventData)
		ours := part || reads || dep == eventData || dep == c.Package || dep == root+"gateway/dialect" || strings.HasPrefix(dep, root+"proto-schemas/")
		require.True(t, ours, "a dialect is a pure translation: it must not import %s", dep)
		if part {
			checked = append(checked, dep)
		}
	}
	for _, dir := range strings.Fields(goList(t, append([]string{"-f", "{{.Dir}}"}, checked...)...)) {
		sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, sources)
		for _, path := range sources {
			if !strings.HasSuffix(path, "_test.go") {
				pureFile(t, path)
				namesNoService(t, path)
			}
		}
	}
}

func pureFile(t *testing.T, path string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, i := range file.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		require.NoError(t, err)
		require.NotContains(t, impure, name, "%s", set.Position(i.Pos()))
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.ChanType, *ast.SelectStmt:
			require.Fail(t, "a codec is not concurrent", "%s", set.Position(n.Pos()))
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "time" {
				require.False(t, slices.Contains(clock, n.Sel.Name), "a codec has no clock: %s", set.Position(n.Pos()))
			}
		}
		return true
	})
}

// listed are the answers of goList: a package may have several suites.
var listed sync.Map

func goList(t *testing.T, args ...string) string {
	t.Helper()
	question := strings.Join(args, " ")
	known, _ := listed.Load(question)
	if answer, ok := known.(string); ok {
		return answer
	}
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	listed.Store(question, string(out))
	return string(out)
}

// commandPackage is the contract of commands, of which dialects use the data.
const commandPackage = root + "proto-schemas/command"

// busNames are the names in package command with which a command is put on the bus: the services and the envelope. Verbs
// are not among them, because events tell of commands by their verbs.
var busNames = []string{"Command", "Session", "Pipeline", "Worker", "Member", "Team", "Task"}

// namesNoService checks that a source mentions no service and builds no command: the table of package binding alone knows
// which service does what.
func namesNoService(t *testing.T, path string) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	local := ""
	for _, i := range file.Imports {
		if i.Path.Value == strconv.Quote(commandPackage) {
			local = "command"
			if i.Name != nil {
				local = i.Name.Name
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == local && slices.Contains(busNames, s.Sel.Name) {
				require.Fail(t, "a dialect returns intents and knows no service", "%s: %s.%s", set.Position(s.Pos()), local, s.Sel.Name)
			}
		}
		return true
	})
}
