package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// build is the cost of a package excluding its tests, in seconds: linking its test binary, usually with a NATS server in
	// it.
	build = 4
	// unknown is the assumed time of tests that have not run here yet.
	unknown = 5
	// cores are those of the reference machine.
	cores = 2
)

// fit selects the chosen packages to test, and names the others.
func (c *check) fit() {
	left := c.budget.Seconds() * cores
	var late []string
	for _, p := range c.chosen() {
		if !p.tested() || p.ofE2E() {
			continue
		}
		cost := float64(build + unknown)
		if s, ok := c.took[p.ImportPath]; ok {
			cost = build + s
		}
		if len(p.files) == 0 && (cost > left || cost > c.budget.Seconds()) {
			late = append(late, fmt.Sprintf("%s (%.0f s)", short(p.ImportPath), cost))
			continue
		}
		left -= cost
		c.tests = append(c.tests, p)
	}
	if len(late) > 0 && c.does("test") {
		target := "make test"
		if c.near {
			target = "make test-all"
		}
		c.say("not tested, for the budget of %v is used up; %s does it: %s", c.budget, target, strings.Join(late, ", "))
	}
}

// show lists the chosen packages with their reasons.
func (c *check) show() {
	var e2e []string
	for _, p := range c.vets {
		switch {
		case p.ofE2E():
			e2e = append(e2e, short(p.ImportPath))
		case len(p.files) > 0 && p.tested():
			c.say("  %-30s changed: %s", short(p.ImportPath), names(p.files))
		case len(p.files) > 0:
			c.say("  %-30s changed, and has no tests: %s", short(p.ImportPath), names(p.files))
		case slices.Contains(c.tests, p):
			c.say("  %-30s needs %s", short(p.ImportPath), short(p.via))
		}
	}
	if len(e2e) > 0 {
		c.say("vetted only, make e2e tests them: %s", strings.Join(e2e, ", "))
	}
	if len(c.vets) == 0 {
		c.say("no package changed")
	}
}

// short returns an import path without the common prefix.
func short(path string) string { return strings.TrimPrefix(path, "github.com/waggle-dev/waggle/") }

// result is test2json's report of the end of a package.
type result struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// known returns the seconds of each package's last test run: in make test, or in this program. It ignores results from Go's
// cache.
func known(results, cache string) map[string]float64 {
	took := map[string]float64{}
	read(filepath.Join(results, "unit.json"), took)
	if b, err := os.ReadFile(filepath.Join(cache, "took.json")); err == nil { //nolint:gosec // the folder is the caller's
		_ = json.Unmarshal(b, &took) // unreadable times are unknown
	}
	return took
}

// read adds the packages of a file of results to took.
func read(file string, took map[string]float64) {
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	cached := map[string]bool{}
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var r result
		if json.Unmarshal(in.Bytes(), &r) != nil || r.Test != "" {
			continue
		}
		switch r.Action {
		case "output":
			cached[r.Package] = cached[r.Package] || strings.Contains(r.Output, "(cached)")
		case "pass", "fail":
			if !cached[r.Package] {
				took[r.Package] = r.Elapsed
			}
		}
	}
}

// remember stores the times of the tests for the next run, and names the slowest.
func (c *check) remember(raw string) {
	now := map[string]float64{}
	read(raw, now)
	var slow []string
	for path, s := range now {
		c.took[path] = s
		slow = append(slow, path)
	}
	slices.SortFunc(slow, func(a, b string) int { return cmp.Compare(now[b], now[a]) })
	var said []string
	for _, path := range slow[:min(3, len(slow))] {
		said = append(said, fmt.Sprintf("%s %.0f s", short(path), now[path]))
	}
	if len(said) > 0 {
		c.say("longest: %s", strings.Join(said, ", "))
	}
	b, err := json.Marshal(c.took)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.cache, "took.json"), b, 0o600)
	}
	if err != nil {
		c.say("how long the tests took is not remembered: %v", err)
	}
}
