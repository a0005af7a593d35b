// Package deptest fails a test when a package has a forbidden import, so that the layers of the architecture hold.
//
// The linter reports the same earlier, but only for the files it knows and only for direct imports. These checks
// follow the imports of every package except those of the standard library, and print the path of imports.
package deptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Std in a list of allowed packages stands for the standard library.
const Std = "std"

// Forbid fails the test for every import of pkg, direct or indirect, that is not allowed. An allowed entry is an
// import path, a path with all below it ("example.org/x/..."), or Std. Forbid ignores test files. The test runs in
// the module, or workspace, that knows pkg.
func Forbid(t testing.TB, pkg string, allowed ...string) {
	t.Helper()
	for _, e := range load(t, pkg).walk(pkg) {
		if !e.allowed(allowed) {
			t.Errorf("%s must not import %s\n\tallowed: %s\n\tway: %s", pkg, e.path, strings.Join(allowed, ", "), e.way)
		}
	}
}

// Deny fails the test when pkg, or a package outside the standard library that it needs, imports one of the paths;
// path/... means all below as well. Each path comes with the reason that the failure shows.
func Deny(t testing.TB, pkg string, reasons map[string]string) {
	t.Helper()
	edges := load(t, pkg).walk(pkg)
	for _, pattern := range slices.Sorted(maps.Keys(reasons)) {
		for _, e := range edges {
			if matches(pattern, e.path) {
				t.Errorf("%s must not import %s: %s\n\tway: %s", pkg, e.path, reasons[pattern], e.way)
			}
		}
	}
}

// imported is one package in the closure of another.
type imported struct {
	path string
	std  bool
	way  string // the shortest path of imports, " -> " between the packages
}

func (e imported) allowed(patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return p == Std && e.std || matches(p, e.path)
	})
}

func matches(pattern, path string) bool {
	base, below := strings.CutSuffix(pattern, "/...")
	return path == base || below && strings.HasPrefix(path, base+"/")
}

// graph maps an import path to its package.
type graph map[string]node

type node struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// walk returns all imports of root, breadth first. It does not enter packages of the standard library.
func (g graph) walk(root string) []imported {
	var out []imported
	seen := map[string]bool{root: true}
	queue := []imported{{path: root, way: root}}
	for len(queue) > 0 {
		from := queue[0]
		queue = queue[1:]
		for _, path := range g[from.path].Imports {
			if seen[path] {
				continue
			}
			seen[path] = true
			e := imported{path: path, std: g[path].Standard, way: from.way + " -> " + path}
			out = append(out, e)
			if !e.std {
				queue = append(queue, e)
			}
		}
	}
	return out
}

func load(t testing.TB, pkg string) graph {
	t.Helper()
	g, err := list(t.Context(), pkg)
	if err != nil {
		t.Fatalf("list the imports of %s: %v", pkg, err)
	}
	return g
}

// list asks the go command, which knows build tags and workspaces.
func list(ctx context.Context, pkg string) (graph, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Standard,Imports", "--", pkg) //nolint:gosec // A test names its package.
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	g := graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var n node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		g[n.ImportPath] = n
	}
	if _, ok := g[pkg]; !ok {
		return nil, fmt.Errorf("go list does not report %s: give its full import path", pkg)
	}
	return g, nil
}
