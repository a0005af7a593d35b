package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

func (p *pkg) tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// ofE2E reports whether the package is of the end-to-end tests or of the performance laboratory, whose tests have targets of
// their own.
func (p *pkg) ofE2E() bool { return strings.Contains(p.ImportPath+"/", "/e2e/") }

// list returns the packages of all modules of the workspace.
func list() (map[string]*pkg, error) {
	modules, err := lines("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	args := []string{"list", "-e", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles,Module"}
	for _, dir := range modules {
		args = append(args, dir+"/...")
	}
	out, err := output("go", args...)
	if err != nil {
		return nil, err
	}
	all := map[string]*pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		all[p.ImportPath] = p
	}
}

// reads is the suffix of packages whose tests read files outside of packages: documents, scripts, the Makefile, settings of
// linters.
const reads = "/cmd/repocheck"

// mark assigns changed files to packages: to the package of their folder, or else to the nearest one above.
func (c *check) mark(files []string) {
	byDir := map[string]*pkg{}
	for _, p := range c.all {
		byDir[p.Dir] = p
	}
	var elsewhere []string
	for _, f := range files {
		if name := filepath.Base(f); name == "go.mod" || name == "go.work" {
			c.say("%s changed: make test runs all that may depend on it", f)
		}
		p := owner(byDir, f)
		if p == nil {
			elsewhere = append(elsewhere, f)
			continue
		}
		p.files, p.far = append(p.files, f), 1
		p.code = p.code || !strings.HasSuffix(f, "_test.go") && !strings.Contains(f, "testdata/")
	}
	if len(elsewhere) > 0 {
		c.say("in no package of the workspace: %s", names(elsewhere))
	}
	for path, p := range c.all {
		if len(elsewhere) > 0 && strings.HasSuffix(path, reads) && p.far == 0 {
			p.far, p.via = 2, elsewhere[0]
		}
	}
}

func owner(byDir map[string]*pkg, file string) *pkg {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil
	}
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if p := byDir[dir]; p != nil {
			return p
		}
		if strings.HasSuffix(file, ".go") || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// follow chooses the importers of chosen packages. It stops where only tests changed, or only tests import the change.
func (c *check) follow() {
	for far, more := 1, true; more && (far == 1 || !c.near); far++ {
		more = false
		for _, p := range c.all {
			if p.far != 0 {
				continue
			}
			via := c.at(far, p.Imports)
			p.code = via != ""
			if !p.code {
				via = c.at(far, append(p.TestImports, p.XTestImports...))
			}
			if via != "" {
				p.far, p.via, more = far+1, via, true
			}
		}
	}
}

// at returns the first of the imports that was chosen at a distance for its code.
func (c *check) at(far int, imports []string) string {
	for _, path := range imports {
		if p := c.all[path]; p != nil && p.far == far && p.code {
			return path
		}
	}
	return ""
}

// chosen returns the chosen packages, the nearest to the change first.
func (c *check) chosen() []*pkg {
	var out []*pkg
	for _, p := range c.all {
		if p.far > 0 {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *pkg) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(c.took[a.ImportPath], c.took[b.ImportPath]), cmp.Compare(a.ImportPath, b.ImportPath))
	})
	return out
}

func paths(of []*pkg) []string {
	var out []string
	for _, p := range of {
		out = append(out, p.ImportPath)
	}
	return out
}
