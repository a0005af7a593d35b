package main

import (
	"go/ast"
	"go/token"
)

// negated are the opposites of comparisons, moved those with the boundary on the other side.
var (
	negated = map[token.Token]token.Token{
		token.EQL: token.NEQ, token.NEQ: token.EQL,
		token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR,
	}
	moved = map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	}
	logic    = map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}
	computed = map[token.Token]token.Token{
		token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
		token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
		token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN,
	}
	counted = map[token.Token]token.Token{token.INC: token.DEC, token.DEC: token.INC}
	jumped  = map[token.Token]token.Token{token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK}
)

// visit adds the mutants of a node.
func (f *finder) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.swap("negate", n, n.OpPos, n.Op, negated)
		f.swap("boundary", n, n.OpPos, n.Op, moved)
		f.swap("logic", n, n.OpPos, n.Op, logic)
		f.swap("arithmetic", n, n.OpPos, n.Op, computed)
	case *ast.IncDecStmt:
		f.swap("increment", n, n.TokPos, n.Tok, counted)
	case *ast.BranchStmt:
		f.swap("jump", n, n.TokPos, n.Tok, jumped)
	case *ast.AssignStmt:
		f.swap("arithmetic", n, n.TokPos, n.Tok, computed)
		if n.Tok != token.DEFINE && !isIdle(n) {
			f.remove("assignment", n)
		}
	case *ast.ExprStmt:
		f.remove("call", n)
	case *ast.IfStmt:
		f.force(n.Cond)
	case *ast.ReturnStmt:
		f.errors(n)
	case *ast.Ident:
		f.literal(n)
	}
}

// swap replaces an operator by the one that the table names.
func (f *finder) swap(operator string, n ast.Node, at token.Pos, tok token.Token, table map[token.Token]token.Token) {
	other, ok := table[tok]
	if !ok {
		return
	}
	start := f.fset.Position(at).Offset
	f.add(operator, n, start, start+len(tok.String()), other.String(), other.String())
}

// isIdle reports whether an assignment does nothing: it gives a value without a call to the blank identifier.
func isIdle(n *ast.AssignStmt) bool {
	for _, l := range n.Lhs {
		if id, ok := l.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	idle := true
	for _, r := range n.Rhs {
		ast.Inspect(r, func(n ast.Node) bool {
			_, call := n.(*ast.CallExpr)
			idle = idle && !call
			return idle
		})
	}
	return idle
}

// remove leaves a statement out.
func (f *finder) remove(what string, n ast.Stmt) {
	if !f.inList(n) {
		return
	}
	start, end := f.span(n)
	f.add("remove "+what, n, start, end, "", "")
}

// force makes a condition true or false. It is still computed, so that the variables in it stay used.
func (f *finder) force(cond ast.Expr) {
	start, end := f.span(cond)
	was := string(f.src[start:end])
	f.add("condition", cond, start, end, "("+was+") || true", "true")
	f.add("condition not", cond, start, end, "("+was+") && false", "false")
}

// errors replaces the errors that a statement returns by nil.
func (f *finder) errors(n *ast.ReturnStmt) {
	results := f.results()
	if len(results) != len(n.Results) {
		return
	}
	for i, r := range n.Results {
		id, ok := r.(*ast.Ident)
		if !results[i] || ok && id.Name == "nil" {
			continue
		}
		start, end := f.span(r)
		f.add("return nil", r, start, end, "nil", "nil")
	}
}

// results tells of each result of the nearest function whether it is an error.
func (f *finder) results() (out []bool) {
	for i := len(f.stack) - 1; i >= 0; i-- {
		var t *ast.FuncType
		switch n := f.stack[i].(type) {
		case *ast.FuncLit:
			t = n.Type
		case *ast.FuncDecl:
			t = n.Type
		default:
			continue
		}
		if t.Results == nil {
			return nil
		}
		for _, r := range t.Results.List {
			id, ok := r.Type.(*ast.Ident)
			for range max(1, len(r.Names)) {
				out = append(out, ok && id.Name == "error")
			}
		}
		return out
	}
	return nil
}

// literal turns true into false, and false into true.
func (f *finder) literal(n *ast.Ident) {
	other := map[string]string{"true": "false", "false": "true"}[n.Name]
	if other == "" {
		return
	}
	start, end := f.span(n)
	f.add("boolean", n, start, end, other, other)
}
