package main

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// profile is the processor time of each part, and of each function without those that it calls.
type profile struct {
	total     time.Duration
	parts     map[string]time.Duration
	functions map[string]time.Duration
}

// part is named work. A sample belongs to the first part that one of its functions matches; with leaf, only
// the function that ran counts.
type part struct {
	name string
	leaf bool
	of   *regexp.Regexp
}

// mixed are the parts that are work of all the others.
var mixed = []part{
	{"garbage collection", false, regexp.MustCompile(`^(runtime\.(gcBgMarkWorker|gcAssistAlloc|bgsweep|bgscavenge|wbBufFlush|gcStart|gcMark|deductSweepCredit|gcDrain|sweepone)|gcWriteBarrier)`)},
	{"allocation", false, regexp.MustCompile(`^runtime\.(mallocgc|growslice|newobject|makeslice)`)},
	{"system calls", true, regexp.MustCompile(`(?i)syscall|runtime\.(futex|epollwait)`)},
	{"goroutines and channels", false, regexp.MustCompile(`^runtime\.(schedule|findRunnable|park_m|mcall|goschedImpl|goexit0|selectgo|ready|newproc|chansend|chanrecv|netpoll|mstart|newstack|lock2|unlock2)`)},
}

// owned are the parts by the package of the innermost function that has one.
var owned = []part{
	{"signatures and hashes", false, regexp.MustCompile(`^crypto/`)},
	{"JSON", false, regexp.MustCompile(`^(encoding/json|github\.com/(go-json-experiment|segmentio/encoding|tidwall))`)},
	{"NATS server", false, regexp.MustCompile(`^github\.com/nats-io/nats-server`)},
	{"NATS client", false, regexp.MustCompile(`^github\.com/nats-io/nats`)},
	{"the benchmark and its clients", false, regexp.MustCompile(`^github\.com/waggle-dev/waggle/gateway_test`)},
	{"Waggle: log", false, regexp.MustCompile(`^github\.com/waggle-dev/waggle/internal/eventlog`)},
	{"Waggle: gateway", false, regexp.MustCompile(`^github\.com/waggle-dev/waggle/gateway`)},
	{"Waggle: services", false, regexp.MustCompile(`^github\.com/waggle-dev/waggle/services`)},
	{"Waggle: others", false, regexp.MustCompile(`^github\.com/waggle-dev/waggle/`)},
	{"net, net/http, bufio", false, regexp.MustCompile(`^(net|net/http|bufio)\.`)},
}

const others = "others"

// partOf returns the part of a sample, whose functions begin with the one that ran.
func partOf(stack []string) string {
	for _, p := range mixed {
		if p.leaf && p.of.MatchString(stack[0]) || !p.leaf && slices.ContainsFunc(stack, p.of.MatchString) {
			return p.name
		}
	}
	for _, f := range stack {
		for _, p := range owned {
			if p.of.MatchString(f) {
				return p.name
			}
		}
	}
	return others
}

// read reads what "go tool pprof -traces" prints: blocks of a duration with the function that ran, and its callers below it.
func read(traces string) profile {
	p := profile{parts: map[string]time.Duration{}, functions: map[string]time.Duration{}}
	var took time.Duration
	var stack []string
	end := func() {
		if len(stack) > 0 {
			p.total += took
			p.parts[partOf(stack)] += took
			p.functions[stack[0]] += took
		}
		stack = nil
	}
	for line := range strings.Lines(traces) {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "-----------"):
			end()
		case len(stack) > 0 && len(words) > 0:
			stack = append(stack, words[0])
		case len(words) > 1:
			if d, err := time.ParseDuration(words[0]); err == nil && d > 0 {
				took, stack = d, []string{words[1]}
			}
		}
	}
	end()
	return p
}
