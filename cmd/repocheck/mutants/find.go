package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
)

// find returns the mutants of a file of product code: none if it is generated.
func find(dir, path string, src []byte) ([]*mutant, error) {
	f := &finder{fset: token.NewFileSet(), dir: dir, file: filepath.Base(path), src: src, seen: map[string]int{}}
	parsed, err := parser.ParseFile(f.fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("find mutants: %w", err)
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	for _, d := range parsed.Decls {
		f.declaration(d)
	}
	return f.out, nil
}

// declaration walks through a function, or through the functions in the value of a variable.
func (f *finder) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		f.fn = d.Name.Name
		if d.Recv != nil && len(d.Recv.List) == 1 {
			f.fn = "(" + f.code(d.Recv.List[0].Type) + ")." + f.fn
		}
		f.walk(d)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			v, ok := s.(*ast.ValueSpec)
			if !ok || d.Tok != token.VAR {
				continue
			}
			f.fn = "var " + v.Names[0].Name
			ast.Inspect(v, func(n ast.Node) bool {
				lit, ok := n.(*ast.FuncLit)
				if ok {
					f.walk(lit)
				}
				return !ok
			})
		}
	}
}

func (f *finder) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			f.stack = f.stack[:len(f.stack)-1]
			return true
		}
		if isLogging(n) {
			return false
		}
		f.visit(n)
		f.stack = append(f.stack, n)
		return true
	})
}

// isLogging reports whether a node is a statement that writes to a log of zerolog's kind, which tests rarely read.
func isLogging(n ast.Node) bool {
	s, ok := n.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (sel.Sel.Name == "Msg" || sel.Sel.Name == "Msgf")
}
