package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

func main() {
	rounds := flag.Int("rounds", 5, "rounds")
	root := flag.String("root", ".", "the project's root")
	page := flag.String("page", "", "file to write; empty = standard output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *root, *page, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, page string, rounds int) error {
	f := figures{}
	for n := range rounds {
		for _, pkg := range packages() {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", n+1, rounds, pkg)
			out, err := bench(ctx, filepath.Join(root, pkg), pattern(pkg))
			if err != nil {
				return err
			}
			f.read(string(out), pkg)
		}
	}
	text, err := f.page(rounds)
	if err != nil {
		return err
	}
	if page == "" {
		_, err = io.WriteString(os.Stdout, text)
		return err
	}
	return os.WriteFile(page, []byte(text), 0o644) //nolint:gosec // a page of the documentation
}

// packages returns the packages of the rows, each once.
func packages() (out []string) {
	for _, r := range rows {
		if !slices.Contains(out, r.pkg) {
			out = append(out, r.pkg)
		}
	}
	return out
}

// pattern matches the benchmarks of a package that the rows need.
func pattern(pkg string) string {
	var names []string
	for _, r := range rows {
		for _, s := range []side{r.ours, r.bare} {
			name, _, _ := strings.Cut(s.benchmark, "/")
			if name = regexp.QuoteMeta("Benchmark" + name); s.benchmark != "" && r.pkg == pkg && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// bench runs benchmarks of a package once.
func bench(ctx context.Context, dir, pattern string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-timeout", "20m", ".") //nolint:gosec // of rows
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("benchmarks in %s: %w\n%s", dir, err, out)
	}
	return out, nil
}
