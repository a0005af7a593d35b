package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// pkg is a package in the go command's description, with the reason for its choice.
type pkg struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
	TestGoFiles, XTestGoFiles          []string
	Module                             struct{ Path, Dir string }

	files []string // changed files
	far   int      // imports between it and the change, plus one; 0: not chosen
	code  bool     // the change concerns more than its tests
	via   string   // the part of the change that it imports or reads
}

func names(files []string) string {
	const most = 4
	out := make([]string, 0, most)
	for _, f := range files[:min(most, len(files))] {
		out = append(out, filepath.Base(f))
	}
	if n := len(files) - most; n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, ", ")
}

// check is one run of the program.
type check struct {
	base, lint, testsum, results, cache string
	steps, raw                          string
	near                                bool // without indirect importers

	budget time.Duration
	args   []string // for go test
	out    io.Writer

	all   map[string]*pkg
	took  map[string]float64
	tests []*pkg // packages to test
	vets  []*pkg // changed packages and all that import them
}

// does reports whether the step was asked for.
func (c *check) does(step string) bool { return slices.Contains(strings.Split(c.steps, ","), step) }

func (c *check) say(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format+"\n", args...) }

// lines runs a command and returns its output by lines.
func lines(name string, args ...string) ([]string, error) {
	out, err := output(name, args...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(s string) bool { return s == "" }), nil
}

func output(name string, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(context.Background(), name, args...).Output() //nolint:gosec // running commands is the purpose
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}
