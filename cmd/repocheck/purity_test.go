package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reducers are the packages that decide. layers holds their dependencies on other packages of the repository.
var reducers = []string{
	"services/conversation", "services/assignment", "services/teamwork", "services/plan", "services/ledger/decision",
}

// outsideOfReducers are the standard library's ways to the time, to chance, to the network, to files and to other
// goroutines.
var outsideOfReducers = []string{
	"context", "crypto/rand", "io/fs", "log", "math/rand", "net", "os", "runtime", "sync", "syscall", "testing",
}

// clocks are the functions of package time that depend on when they are called.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"}

// TestReducersArePure: the result of a reducer depends on its arguments only.
func TestReducersArePure(t *testing.T) {
	files := 0
	for _, p := range reducers {
		eachFile(t, filepath.Join(top(t), p), func(path string, f *ast.File) {
			files++
			for _, i := range f.Imports {
				name := strings.Trim(i.Path.Value, `"`)
				if slices.ContainsFunc(outsideOfReducers, func(bad string) bool { return name == bad || strings.HasPrefix(name, bad+"/") }) {
					t.Errorf("%s imports %s: a reducer is pure", path, name)
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && isClock(s) {
					t.Errorf("%s calls time.%s: a reducer takes the time as an argument", path, s.Sel.Name)
				}
				_, goes := n.(*ast.GoStmt)
				require.False(t, goes, "%s starts a goroutine: a reducer is pure", path)
				return true
			})
		})
	}
	require.Greater(t, files, 30)
}

// TestDecisionsArePure: a decision reads nothing live while a log is appended to. Functions of services that return a
// decision take no context and read no clock, and a service's Decide is a function of its package, so that it has only its
// arguments.
func TestDecisionsArePure(t *testing.T) {
	decisions, configured := 0, 0
	eachFile(t, filepath.Join(top(t), "services"), func(path string, f *ast.File) {
		ledger := f.Name.Name == "ledger"
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if strings.EqualFold(n.Name.Name, "decide") && takesContext(n.Type) {
					t.Errorf("%s: %s takes a context: gather what is live before the append", path, n.Name.Name)
				}
				if returnsDecision(n.Type) && !ledger {
					decisions++
					checkDecision(t, path, n.Type, n.Body)
				}
			case *ast.FuncLit:
				if returnsDecision(n.Type) {
					decisions++
					checkDecision(t, path, n.Type, n.Body)
				}
			case *ast.KeyValueExpr:
				if k, ok := n.Key.(*ast.Ident); ok && k.Name == "Decide" {
					configured++
					_, plain := n.Value.(*ast.Ident)
					require.True(t, plain, "%s: Decide has to be a function of the package, not of a value with a clock or a bus", path)
				}
			}
			return true
		})
	})
	require.Greater(t, decisions, 50)
	require.Equal(t, 3, configured, "services with a Decide: session, pipeline, task")
}

func checkDecision(t *testing.T, path string, f *ast.FuncType, body *ast.BlockStmt) {
	t.Helper()
	if takesContext(f) {
		t.Errorf("%s: a function that returns a decision takes a context", path)
	}
	if body == nil {
		return
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if n.Name == "ctx" {
				t.Errorf("%s: a decision uses a context", path)
			}
		case *ast.SelectorExpr:
			if isClock(n) || n.Sel.Name == "Now" && isCall(body, n) {
				t.Errorf("%s: a decision asks a clock", path)
			}
		}
		return true
	})
}

// isCall reports whether a call in the body calls the selector.
func isCall(body ast.Node, s *ast.SelectorExpr) (called bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		called = called || ok && c.Fun == s
		return !called
	})
	return called
}

func isClock(s *ast.SelectorExpr) bool {
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == "time" && slices.Contains(clocks, s.Sel.Name)
}

func takesContext(f *ast.FuncType) bool {
	return slices.ContainsFunc(f.Params.List, func(p *ast.Field) bool { return isSelector(p.Type, "context", "Context") })
}

// returnsDecision reports whether the function returns a decision and an error.
func returnsDecision(f *ast.FuncType) bool {
	return f.Results != nil && len(f.Results.List) == 2 && isSelector(f.Results.List[0].Type, "decision", "Decision")
}

func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == pkg && s.Sel.Name == name
}

// eachFile visits the Go files under a folder that are not tests.
func eachFile(t *testing.T, dir string, visit func(path string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			visit(path, f)
		}
		return err
	})
	require.NoError(t, err)
}
