// Command check tests a change: it finds the packages that differ from the base, vets and lints them, and runs their unit
// tests and those of the packages that import them.
//
//	check -lint golangci-lint -testsum testsum -- -race -p 3   arguments for go test
//	check -steps test -near -- -race -p 3                      the tests only, of the change and its direct importers
//	check -plan                                                list the packages only
//	check -files                                               list the changed files only
//
// The base is where the branch left main; on main itself the previous commit, or with CI=true the newest commit that is four
// hours older than the last one: a clone does not know what was there before a push. Uncommitted changes count. The command
// always tests changed packages. It tests direct and indirect importers, the nearest first, while the seconds of their last
// test runs fit into the budget, and names the others.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	c := &check{out: os.Stdout}
	flag.StringVar(&c.base, "base", "", "commit to compare with (default: where the branch left main)")
	flag.StringVar(&c.lint, "lint", "", "golangci-lint; none: without lint")
	flag.StringVar(&c.testsum, "testsum", "", "program that runs go test -json and shows what matters")
	flag.StringVar(&c.results, "results", ".cache/test", "folder of the results of make test")
	flag.StringVar(&c.cache, "cache", ".cache/check", "folder for the results of this program")
	flag.DurationVar(&c.budget, "budget", 60*time.Second, "time for the tests of importers, on two cores")
	flag.StringVar(&c.raw, "out", "", "file for the raw results of the tests (default: unit.json in the folder of -cache)")
	flag.BoolVar(&c.near, "near", false, "leave out packages that import the change through others only")
	flag.StringVar(&c.steps, "steps", "vet,lint,test", "steps to run")
	plan := flag.Bool("plan", false, "show what would run, and run nothing")
	files := flag.Bool("files", false, "list the changed files, and run nothing")
	flag.Parse()
	c.args = flag.Args()
	if *files {
		c.out = os.Stderr
	}
	err := c.choose(*files)
	if err == nil && !*plan && !*files {
		err = c.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// choose finds and shows the packages to check, or with only the changed files.
func (c *check) choose(only bool) error {
	files, err := c.changes()
	if err != nil {
		return err
	}
	if only {
		_, err := fmt.Fprintln(os.Stdout, strings.Join(files, "\n"))
		return err
	}
	if c.all, err = list(); err != nil {
		return err
	}
	c.took = known(c.results, c.cache)
	c.mark(files)
	c.follow()
	c.vets = c.chosen()
	c.fit()
	c.show()
	return nil
}

// changes returns the files that differ from the base, and the base's description.
func (c *check) changes() ([]string, error) {
	why := c.base
	if c.base == "" {
		var err error
		if c.base, why, err = base(); err != nil {
			return nil, err
		}
	}
	changed, err := lines("git", "diff", "--name-only", "--no-renames", c.base)
	if err != nil {
		return nil, err
	}
	added, err := lines("git", "ls-files", "-o", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	files := append(changed, added...)
	c.say("check: %d files differ from %s", len(files), why)
	return files, nil
}

// base returns the commit at which a change began, and its description.
func base() (commit, why string, err error) {
	head, err := lines("git", "rev-parse", "HEAD")
	if err != nil {
		return "", "", err
	}
	for _, main := range []string{"main", "origin/main"} {
		at, err := lines("git", "merge-base", "HEAD", main)
		if err == nil && len(at) == 1 && at[0] != head[0] {
			return at[0], fmt.Sprintf("%.7s, where the branch left %s", at[0], main), nil
		}
	}
	dirty, err := lines("git", "status", "--porcelain")
	if err != nil {
		return "", "", err
	}
	if len(dirty) > 0 {
		return head[0], "HEAD", nil
	}
	if os.Getenv("CI") != "" {
		return push(head[0])
	}
	return "HEAD~", "HEAD~, the commit before", nil
}

// push returns the commit at which the last push began, as far as a clone can tell: the newest one that is hours older.
func push(head string) (commit, why string, err error) {
	const hours = 4
	at, err := lines("git", "show", "-s", "--format=%ct", head)
	if err != nil || len(at) != 1 {
		return "", "", err
	}
	seconds, err := strconv.ParseInt(at[0], 10, 64)
	if err != nil {
		return "", "", err
	}
	before, err := lines("git", "rev-list", "-1", fmt.Sprintf("--before=%d", seconds-hours*3600), head)
	if err != nil {
		return "", "", err
	}
	if len(before) == 0 { // the repository is younger than that
		before, err = lines("git", "rev-list", "--max-parents=0", head)
	}
	if err != nil || len(before) == 0 {
		return "", "", err
	}
	return before[0], fmt.Sprintf("%.7s, %d hours before the last commit", before[0], hours), nil
}

// step runs one part of the check and reports its duration.
func (c *check) step(name string, f func() error) error {
	began := time.Now()
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.say("%s ok, %.0f s", name, time.Since(began).Seconds())
	return nil
}

// run vets, lints and tests the chosen packages.
func (c *check) run() error {
	if len(c.vets) == 0 {
		return nil
	}
	if c.does("vet") {
		if err := c.step("vet", func() error { return c.command("", "go", append([]string{"vet"}, paths(c.vets)...)...) }); err != nil {
			return err
		}
	}
	if c.does("lint") {
		if c.lint == "" {
			c.say("not linted: no linter was named")
		} else if err := c.step("lint", c.lintChanged); err != nil {
			return err
		}
	}
	if c.does("test") {
		return c.test()
	}
	return nil
}

func (c *check) command(dir, name string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), name, args...) //nolint:gosec // running commands is the purpose
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, c.out, os.Stderr
	return cmd.Run()
}

// lintChanged runs the linter once on all packages that changed: runs for single modules would read what they share anew.
func (c *check) lintChanged() error {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	args := []string{"run", "--config", ".golangci.yml"}
	none := len(args)
	for _, p := range c.vets {
		if rel, err := filepath.Rel(root, p.Dir); len(p.files) > 0 && err == nil {
			args = append(args, "./"+filepath.ToSlash(rel))
		}
	}
	if len(args) == none {
		return nil // no package changed
	}
	return c.command("", c.lint, args...)
}

// test runs the tests; run has called vet before.
func (c *check) test() error {
	if len(c.tests) == 0 {
		return nil
	}
	// The slowest begin: the last of them would keep one processor busy and the others not.
	slices.SortFunc(c.tests, func(a, b *pkg) int { return cmp.Compare(c.took[b.ImportPath], c.took[a.ImportPath]) })
	raw := cmp.Or(c.raw, filepath.Join(c.cache, "unit.json"))
	args := append([]string{"-out", raw, "--", "go", "test", "-json", "-vet=off"}, c.args...)
	began := time.Now()
	err := c.command("", c.testsum, append(args, paths(c.tests)...)...)
	c.remember(raw)
	if err != nil {
		return fmt.Errorf("test: %w", err)
	}
	c.say("test ok, %.0f s", time.Since(began).Seconds())
	return nil
}
