package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/waggle-dev/waggle/e2e/lab/benchmarks"
)

// taken is what one side has measured.
type taken struct {
	figures []string
	profile profile
}

var errNoFigure = errors.New("the benchmark has not reported its figure")

// take measures a path in a checkout.
func take(ctx context.Context, root string, p path) (taken, error) {
	dir, err := os.MkdirTemp("", "profiles-")
	if err != nil {
		return taken{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var t taken
	file := filepath.Join(dir, "cpu.prof")
	if p.benchmark == "" {
		t.figures, err = answers(ctx, root, dir, file)
	} else {
		t.figures, err = bench(ctx, root, dir, file, p)
	}
	if err != nil {
		return taken{}, fmt.Errorf("%s in %s: %w", p.title, root, err)
	}
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", file).Output() //nolint:gosec // a file of this function
	if err != nil {
		return taken{}, fmt.Errorf("read the profile: %w", err)
	}
	t.profile = read(string(out))
	return t, nil
}

// bench runs a benchmark of the gateway with its profile.
func bench(ctx context.Context, root, dir, file string, p path) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", p.benchmark, "-benchtime", p.time, "-timeout", "10m", //nolint:gosec // of paths
		"-o", filepath.Join(dir, "gateway.test"), "-cpuprofile", file, ".")
	cmd.Dir, cmd.Stderr = filepath.Join(root, "gateway"), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	for _, f := range benchmarks.Read(string(out)) {
		if f.Unit == p.unit {
			return []string{strconv.FormatFloat(f.Value, 'f', -1, 64) + " " + p.unit}, nil
		}
	}
	return nil, errNoFigure
}
