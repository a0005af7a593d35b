package main

import (
	"regexp"
	"slices"
	"strings"
)

// kept is the number of last lines that an outcome keeps, of all output and of each test.
const kept = 25

// outcome is what the output of a test binary tells.
type outcome struct {
	passed   bool
	timedOut bool
	failed   []string // tests, in the order in which they failed
	open     []string // tests that were running at the end
	seconds  float64

	lines []string            // the last of the output
	test  string              // the one that writes
	logs  map[string][]string // the last of the output of each open or failed test
}

// sign marks lines of the testing package, so that tests cannot print them by chance.
const sign = "\x16"

var (
	goes  = regexp.MustCompile(`^=== (RUN|NAME|PAUSE|CONT) +(\S*)$`)
	ended = regexp.MustCompile(`^--- (PASS|FAIL|SKIP): (\S+) `)
)

// take reads one line of the output and reports whether it tells of a failed test.
func (o *outcome) take(line string) (failed bool) {
	o.timedOut = o.timedOut || strings.HasPrefix(line, "panic: test timed out after ")
	text, marked, ok := strings.Cut(line, sign)
	if text != "" || !ok {
		o.keep(text)
	}
	if m := goes.FindStringSubmatch(marked); m != nil {
		o.test = m[2]
		switch m[1] {
		case "RUN", "CONT":
			o.open = append(o.open, o.test)
		case "PAUSE":
			o.close(o.test)
		}
	}
	m := ended.FindStringSubmatch(marked)
	if m == nil {
		return false
	}
	o.test = m[2] // the end of its output follows
	o.close(o.test)
	if m[1] != "FAIL" || o.timedOut {
		delete(o.logs, o.test)
		return false
	}
	o.failed = append(o.failed, o.test)
	return true
}

// close notes that a test no longer runs: it has ended, or waits for its turn.
func (o *outcome) close(test string) {
	o.open = slices.DeleteFunc(o.open, func(name string) bool { return name == test })
}

// keep holds a line of the output, and forgets the first ones.
func (o *outcome) keep(line string) {
	if o.logs == nil {
		o.logs = map[string][]string{}
	}
	o.lines = last(append(o.lines, line))
	o.logs[o.test] = last(append(o.logs[o.test], line))
}

func last(lines []string) []string { return lines[max(0, len(lines)-kept):] }

// tests returns the top-level tests that failed, or that were open when the binary crashed.
func (o *outcome) tests() []string {
	names := o.failed
	if len(names) == 0 {
		names = o.open
	}
	var out []string
	for _, name := range names {
		name, _, _ = strings.Cut(name, "/")
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// killers names what failed: tests and parts of tests, open tests after a crash, or the end of the binary after all tests.
func (o *outcome) killers() []string {
	const most = 5
	switch {
	case len(o.failed) > 0:
		return o.failed[:min(most, len(o.failed))]
	case len(o.open) > 0:
		out := o.tests()[:min(most, len(o.tests()))]
		for i := range out {
			out[i] += " (had not ended)"
		}
		return out
	}
	return []string{"TestMain"}
}

// tail returns the end of the output: of the first failed test, or else of all.
func (o *outcome) tail() string {
	if len(o.failed) > 0 && len(o.logs[o.failed[0]]) > 0 {
		return strings.Join(o.logs[o.failed[0]], "\n")
	}
	return strings.Join(o.lines, "\n")
}

// weather matches failures of the machine rather than of the code.
var weather = regexp.MustCompile(`address already in use|no space left on device|cannot allocate memory|too many open files|text file busy` +
	`|resource temporarily unavailable|go-build.*no such file`)

// isWeather reports whether the machine may have failed instead of the code.
func (o *outcome) isWeather() bool {
	return !o.passed && !o.timedOut && weather.MatchString(o.tail())
}
