package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// finder collects the mutants of one file.
type finder struct {
	fset  *token.FileSet
	dir   string // of the package, as part of identities
	file  string
	src   []byte
	fn    string         // the function or variable around the node
	stack []ast.Node     // the nodes around it, the nearest last
	seen  map[string]int // mutants that equal each other but for their ordinals
	out   []*mutant
}

// code returns the source text of a node in one line.
func (f *finder) code(n ast.Node) string {
	start, end := f.span(n)
	return strings.Join(strings.Fields(string(f.src[start:end])), " ")
}

func (f *finder) span(n ast.Node) (start, end int) {
	return f.fset.Position(n.Pos()).Offset, f.fset.Position(n.End()).Offset
}

// add keeps a mutant of a node: text replaces the bytes from start to end.
func (f *finder) add(operator string, of ast.Node, start, end int, text, with string) {
	original := f.code(of)
	m := &mutant{
		File: f.file, Func: f.fn, Operator: operator, With: with, Line: f.fset.Position(of.Pos()).Line,
		start: start, end: end, text: text, at: f.runsAt(of),
	}
	key := strings.Join([]string{f.fn, operator, original}, "\x00")
	m.Ordinal = f.seen[key]
	f.seen[key]++
	m.identify(f.dir, original)
	f.out = append(f.out, m)
}

// runsAt returns the place by which a coverage profile tells whether a node ran. Profiles have no block for the expressions of
// a case: they count as run with their switch.
func (f *finder) runsAt(n ast.Node) token.Position {
	pos := n.Pos()
	inside := n
	for i, around := range slices.Backward(f.stack) {
		if _, ok := around.(*ast.FuncLit); ok {
			break
		}
		if c, ok := around.(*ast.CaseClause); ok && i >= 2 && !slices.ContainsFunc(c.Body, func(s ast.Stmt) bool { return s == inside }) {
			pos = f.stack[i-2].Pos()
			break
		}
		inside = around
	}
	return f.fset.Position(pos)
}

// parent returns the node around the one that is visited.
func (f *finder) parent() ast.Node {
	if len(f.stack) == 0 {
		return nil
	}
	return f.stack[len(f.stack)-1]
}

// inList reports whether the visited statement is one of a list, so that the code stays complete without it.
func (f *finder) inList(n ast.Stmt) bool {
	switch p := f.parent().(type) {
	case *ast.BlockStmt, *ast.CaseClause:
		return true
	case *ast.CommClause:
		return p.Comm != n
	}
	return false
}
