package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// campaign is one run of the program.
type campaign struct {
	root, out string
	before    string // folder of an earlier measurement, or ""
	sample    int
	seed      int64
	parallel  int
	progress  io.Writer

	mu         sync.Mutex // also guards the records of all parts
	done, todo int
}

// part is the share of one package.
type part struct {
	of       *source
	record   *record
	rest     []*mutant // beyond the sample, in their order
	before   map[string]*tried
	deadline time.Duration
	profile  profile
}

func (c *campaign) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.progress, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

// run measures packages until the context ends. It returns the records of all that it could load, complete or not.
func (c *campaign) run(ctx context.Context, names []string) ([]*record, error) {
	if err := os.MkdirAll(c.out, 0o750); err != nil {
		return nil, err
	}
	parts := make([]*part, len(names))
	errs := make([]error, len(names))
	c.each(len(names), func(i int) { parts[i], errs[i] = c.prepare(ctx, names[i]) })
	parts = slices.DeleteFunc(parts, func(p *part) bool { return p == nil })
	var records []*record
	for _, p := range parts {
		records = append(records, p.record)
	}
	tasks := c.tasks(ctx, parts)
	c.todo = len(tasks)
	failed := make([]error, len(tasks))
	c.each(len(tasks), func(i int) {
		if ctx.Err() == nil {
			failed[i] = tasks[i]()
		}
	})
	return records, errors.Join(append(errs, failed...)...)
}

// tasks returns what is to try: first the first mutants of all packages, so that a run that stops early has a smaller sample of
// each.
func (c *campaign) tasks(ctx context.Context, parts []*part) (out []func() error) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, p := range parts {
			if i >= len(p.record.Mutants) || p.record.Broken != "" {
				continue
			}
			more = true
			if p.record.Mutants[i].Verdict == "" {
				out = append(out, func() error { return c.try(ctx, p, i) })
			}
		}
	}
	return out
}

// each calls f for 0 to n-1 in their order, some of them at a time.
func (c *campaign) each(n int, f func(int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range c.parallel {
		all.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// prepare loads a package, takes the sample and the verdicts that are known, and runs the tests without a mutant if any are
// not.
func (c *campaign) prepare(ctx context.Context, name string) (*part, error) {
	p := &part{before: map[string]*tried{}}
	var err error
	if p.of, err = load(ctx, c.root, name); err != nil {
		return nil, ignoreEnd(ctx, err)
	}
	known, err := c.known(p)
	if err != nil {
		return nil, err
	}
	p.record = &record{Package: name, Inputs: p.of.inputs, Seed: c.seed, Sample: c.sample, All: len(p.of.mutants)}
	c.choose(p)
	for _, r := range known {
		p.record.adopt(r)
	}
	if n := p.record.left(); n > 0 {
		c.say("%s: %d of %d mutants to try", name, n, len(p.record.Mutants))
		if err = c.baseline(ctx, p); err != nil {
			err = ignoreEnd(ctx, fmt.Errorf("%s without a mutant: %w", name, err))
		}
	}
	return p, errors.Join(err, p.record.write(c.out))
}

// known returns the records of a package: the one to compare with, and that of an earlier run.
func (c *campaign) known(p *part) (out []*record, err error) {
	if c.before != "" {
		before, err := readRecord(c.before, p.of.name)
		if err != nil {
			return nil, err
		}
		if before == nil {
			c.say("%s: %s has no record of it", p.of.name, c.before)
		}
		p.before = before.kills()
		out = append(out, before)
	}
	known, err := readRecord(c.out, p.of.name)
	return append(out, known), err
}

// ignoreEnd drops errors of a program that ends early.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// choose takes the first mutants that compile. Those that were killed before come first.
func (c *campaign) choose(p *part) {
	first := map[string]bool{}
	for id := range p.before {
		first[id] = true
	}
	p.rest = order(p.of.mutants, c.seed, first)
	for len(p.record.Mutants) < max(c.sample, len(first)) {
		m := p.next()
		if m == nil {
			return
		}
		p.record.Mutants = append(p.record.Mutants, &tried{mutant: *m})
	}
}

// next takes the next mutant that compiles, or nil.
func (p *part) next() *mutant {
	for len(p.rest) > 0 {
		m := p.rest[0]
		p.rest = p.rest[1:]
		if p.of.compiles(m) {
			return m
		}
	}
	return nil
}

// maxWait exceeds the minute that most tests wait for an event: tests that fail after it have names, unlike a time-out.
const maxWait = 100 * time.Second

// baseline runs the tests without a mutant, and marks the mutants that they do not reach. A second failure makes the package
// broken.
func (c *campaign) baseline(ctx context.Context, p *part) error {
	p.record.Broken = "not run"
	w, err := newWorkshop(c.root, p.of)
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.build(ctx, nil, "-cover"); err != nil {
		return err
	}
	path := filepath.Join(w.dir, "profile")
	const longest = 15 * time.Minute
	o, err := w.run(ctx, longest, nil, "-test.coverprofile="+path)
	if err == nil && !o.passed {
		p.record.Flaky = o.tail()
		c.say("%s FAILS WITHOUT A MUTANT, once more: %v\n%s", p.of.name, o.killers(), o.tail())
		o, err = w.run(ctx, longest, nil, "-test.coverprofile="+path)
	}
	switch {
	case err != nil:
		return err
	case !o.passed:
		p.record.Broken = o.tail()
		return fmt.Errorf("tests fail: %v", o.killers())
	}
	p.record.Broken, p.record.Seconds = "", o.seconds
	p.deadline = time.Duration(4*o.seconds*float64(time.Second)).Round(time.Second) + maxWait
	f, err := os.Open(path) //nolint:gosec // of this program
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if p.profile, err = readProfile(f); err != nil {
		return err
	}
	p.markUncovered()
	c.say("%s is green, %.0f s", p.of.name, o.seconds)
	return nil
}

// markUncovered gives a verdict to the mutants in code that no test runs.
func (p *part) markUncovered() {
	for _, m := range p.record.Mutants {
		if m.Verdict == "" && !p.profile.covers(m.File, m.at) {
			m.Verdict = notCovered
		}
	}
}

// try judges one mutant of the sample and keeps the verdict. A mutant that does not build gives its place to the next.
func (c *campaign) try(ctx context.Context, p *part, i int) error {
	w, err := newWorkshop(c.root, p.of)
	if err != nil {
		return err
	}
	defer w.close()
	m := p.record.Mutants[i]
	for err = w.build(ctx, &m.mutant); err != nil; err = w.build(ctx, &m.mutant) {
		if ctx.Err() != nil {
			return nil
		}
		c.say("%s/%v does not build: %v", p.of.name, &m.mutant, err)
		c.mu.Lock()
		next := p.next()
		c.mu.Unlock()
		if next == nil {
			return nil
		}
		m = &tried{mutant: *next}
		if !p.profile.covers(m.File, m.at) {
			m.Verdict = notCovered
			return c.keep(p, i, m)
		}
	}
	var first []string
	if was := p.before[m.ID]; was != nil && was.Verdict == killed {
		first = topLevel(was.Tests)
	}
	m.judgement, err = judge(ctx, func(ctx context.Context, tests []string) (*outcome, error) {
		return w.run(ctx, p.deadline, tests)
	}, first)
	if err != nil {
		m.judgement = judgement{}
		return ignoreEnd(ctx, err)
	}
	return c.keep(p, i, m)
}

// keep writes a verdict down.
func (c *campaign) keep(p *part, i int, m *tried) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.record.Mutants[i] = m
	c.done++
	c.say("%d/%d %s, %.0f s: %s/%s %v", c.done, c.todo, m.Verdict, m.Seconds, p.of.name, m.mutant.String(), m.Tests)
	return p.record.write(c.out)
}
