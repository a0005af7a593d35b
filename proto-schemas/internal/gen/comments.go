package gen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// comments holds the comments on the structs of packages.
type comments struct {
	structs map[string]string // struct -> its comment, on one line
	fields  map[string]string // struct.field -> its comment, on one line
}

// readComments parses the Go files of the packages below root, without their tests. Of two structs with the same name the
// later package's comments count.
func readComments(root string, packages []string) (*comments, error) {
	c := &comments{structs: map[string]string{}, fields: map[string]string{}}
	for _, name := range packages {
		if err := c.read(filepath.Join(root, name)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// read parses the Go files of a folder.
func (c *comments) read(dir string) error {
	names, err := fs.Glob(os.DirFS(dir), "*.go")
	if err != nil {
		return fmt.Errorf("list sources: %w", err)
	}
	set := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return fmt.Errorf("parse sources: %w", err)
		}
		c.add(file)
	}
	return nil
}

func (c *comments) add(file *ast.File) {
	for _, decl := range file.Decls {
		g, ok := decl.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			t, _ := spec.(*ast.TypeSpec)
			s, ok := t.Type.(*ast.StructType)
			if !ok {
				continue
			}
			c.structs[t.Name.Name] = oneLine(g.Doc)
			for _, f := range s.Fields.List {
				for _, n := range f.Names {
					c.fields[t.Name.Name+"."+n.Name] = oneLine(f.Comment)
				}
			}
		}
	}
}

// about returns the comment on a struct with its name replaced by the given one.
func (c *comments) about(structName, name string) string {
	text := c.structs[structName]
	return name + strings.TrimPrefix(text, structName)
}

func oneLine(g *ast.CommentGroup) string {
	return strings.Join(strings.Fields(g.Text()), " ")
}
