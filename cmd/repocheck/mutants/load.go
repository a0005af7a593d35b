package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// listed is a package in the go command's description.
type listed struct {
	ImportPath, Dir, Export, ForTest string
	GoFiles, EmbedFiles              []string
	DepOnly                          bool
	Module                           *struct {
		Path, Version, GoVersion string
		Main                     bool
	}
}

// source is the code of one package, and what tells whether a mutant of it compiles.
type source struct {
	name, path, dir string // as the caller names it, for imports, in the file system
	inputs          string // the hash of all code that its tests depend on
	rapid           bool   // whether its tests know the flags of rapid
	text            map[string][]byte
	mutants         []*mutant

	mu     sync.Mutex
	fset   *token.FileSet
	parsed map[string]*ast.File
	config types.Config
}

// load reads a package below the root of the workspace.
func load(ctx context.Context, root, name string) (*source, error) {
	all, err := list(ctx, root, name)
	if err != nil {
		return nil, err
	}
	s := &source{name: name, text: map[string][]byte{}, fset: token.NewFileSet(), parsed: map[string]*ast.File{}}
	exports := map[string]string{}
	var of *listed
	for _, p := range all {
		if p.ForTest != "" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		exports[p.ImportPath] = p.Export
		s.rapid = s.rapid || p.ImportPath == "pgregory.net/rapid"
		if !p.DepOnly {
			of = p
		}
	}
	if of == nil || of.Module == nil {
		return nil, fmt.Errorf("%s: not a package of the workspace", name)
	}
	s.path, s.dir = of.ImportPath, of.Dir
	s.config = types.Config{
		GoVersion: "go" + of.Module.GoVersion, Sizes: types.SizesFor("gc", runtime.GOARCH),
		Importer: importer.ForCompiler(s.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(filepath.Clean(exports[path])) }),
	}
	if s.inputs, err = inputs(all, s.dir); err != nil {
		return nil, err
	}
	return s, s.read(of.GoFiles)
}

// read parses the product code and finds its mutants.
func (s *source) read(files []string) error {
	for _, name := range files {
		path := filepath.Join(s.dir, name)
		text, err := os.ReadFile(path) //nolint:gosec // the go command named it
		if err != nil {
			return err
		}
		s.text[name] = text
		if s.parsed[name], err = parser.ParseFile(s.fset, path, text, parser.SkipObjectResolution); err != nil {
			return err
		}
		found, err := find(s.name, path, text)
		if err != nil {
			return err
		}
		s.mutants = append(s.mutants, found...)
	}
	if err := s.check("", nil); err != nil {
		return fmt.Errorf("type check of %s without mutants: %w", s.name, err)
	}
	return nil
}

// compiles reports whether the package with a mutant in it passes the checks of the compiler.
func (s *source) compiles(m *mutant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := parser.ParseFile(s.fset, filepath.Join(s.dir, m.File), m.apply(s.text[m.File]), parser.SkipObjectResolution)
	return err == nil && s.check(m.File, f) == nil
}

// check checks the types of the package, with another file in the place of one of its own.
func (s *source) check(name string, instead *ast.File) error {
	files := make([]*ast.File, 0, len(s.parsed))
	for _, n := range slices.Sorted(maps.Keys(s.parsed)) {
		if n == name {
			files = append(files, instead)
		} else {
			files = append(files, s.parsed[n])
		}
	}
	_, err := s.config.Check(s.path, s.fset, files, nil)
	return err
}

// list returns a package, the variants of it for its tests, and all that they import.
func list(ctx context.Context, root, name string) ([]*listed, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps", "-test", //nolint:gosec // the caller names packages
		"-json=ImportPath,Dir,Export,ForTest,GoFiles,EmbedFiles,DepOnly,Module", "./"+name)
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w\n%s", name, err, said.Bytes())
	}
	var all []*listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &listed{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list %s: %w", name, err)
		}
		all = append(all, p)
	}
}

// format is part of all hashes of inputs: another one forgets the verdicts of earlier versions of the tool.
const format = "1"

// inputs hashes the files of the workspace that the tests of a package are built from, its test data and the versions of
// foreign modules.
func inputs(all []*listed, dir string) (string, error) {
	var files []string
	lines := []string{"format " + format}
	for _, p := range all {
		switch {
		case p.Module == nil || strings.HasSuffix(p.ImportPath, ".test"):
		case !p.Module.Main:
			lines = append(lines, p.Module.Path+" "+p.Module.Version)
		default:
			for _, name := range slices.Concat(p.GoFiles, p.EmbedFiles) {
				files = append(files, filepath.Join(p.Dir, name))
			}
		}
	}
	err := filepath.WalkDir(filepath.Join(dir, "testdata"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "rapid":
			return fs.SkipDir
		case d.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	for _, path := range files {
		text, err := os.ReadFile(path) //nolint:gosec // the go command named it
		if err != nil {
			return "", err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return "", err
		}
		lines = append(lines, fmt.Sprintf("%s %x", filepath.ToSlash(rel), sha256.Sum256(text)))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(lines), "\n")))
	return hex.EncodeToString(sum[:8]), nil
}
