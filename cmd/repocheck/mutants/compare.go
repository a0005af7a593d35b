package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// comparison is what became of the mutants that an earlier measurement killed.
type comparison struct {
	lost []string // they survive now
	gone []string // the product code that they changed is another now
	left int      // they have not been tried again
}

// compare looks for the killed mutants of a package in its present record.
func (c *comparison) compare(before, now *record) {
	present := map[string]*tried{}
	for _, m := range now.Mutants {
		present[m.ID] = m
	}
	for _, was := range before.Mutants {
		if !was.Verdict.isKilled() {
			continue
		}
		is := present[was.ID]
		by := fmt.Sprintf("%s/%s, %s before by %s", before.Package, was.mutant.String(), was.Verdict, strings.Join(was.Tests, ", "))
		switch {
		case is == nil:
			c.gone = append(c.gone, by)
		case is.Verdict == "":
			c.left++
		case !is.Verdict.isKilled():
			c.lost = append(c.lost, fmt.Sprintf("%s, %s now", by, is.Verdict))
		}
	}
	slices.Sort(c.lost)
	slices.Sort(c.gone)
}

// show prints the comparison, and returns an error unless all mutants of the same product code are still killed.
func (c *comparison) show(out io.Writer) error {
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			_, _ = fmt.Fprintf(out, "%s: %d\n  %s\n", title, len(lines), strings.Join(lines, "\n  "))
		}
	}
	section("killed before, product code changed since", c.gone)
	section("KILLED BEFORE, NOT NOW", c.lost)
	switch {
	case len(c.lost) > 0:
		return fmt.Errorf("the tests have lost %d mutants", len(c.lost))
	case c.left > 0:
		return fmt.Errorf("%d mutants that were killed before have not been tried: run it again to go on", c.left)
	}
	_, _ = fmt.Fprintln(out, "all mutants that were killed before are killed, unless the product code changed")
	return nil
}
