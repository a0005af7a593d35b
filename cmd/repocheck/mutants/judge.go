package main

import (
	"context"
	"slices"
	"strings"
	"time"
)

// verdict is what the tests say of a mutant.
type verdict string

const (
	killed     verdict = "killed"
	survived   verdict = "survived"
	notCovered verdict = "not covered"
	timedOut   verdict = "timed out" // counts as killed
)

// isKilled reports whether the tests notice the mutant.
func (v verdict) isKilled() bool { return v == killed || v == timedOut }

// judgement is a verdict with its grounds.
type judgement struct {
	Verdict verdict  `json:"verdict,omitempty"`
	Tests   []string `json:"tests,omitempty"` // that killed the mutant
	Note    string   `json:"note,omitempty"`
	Seconds float64  `json:"seconds,omitempty"`
}

// trial runs a built binary: all its tests, or the named ones.
type trial func(ctx context.Context, tests []string) (*outcome, error)

// judge runs the tests on a mutant; first are those that killed it in an earlier measurement. No single failure kills: it has
// to come again, of the same tests alone or else of all tests.
func judge(ctx context.Context, run trial, first []string) (judgement, error) {
	start := time.Now()
	j, err := hunt(ctx, run, first)
	j.Seconds = float64(time.Since(start).Milliseconds()) / 1000
	return j, err
}

func hunt(ctx context.Context, run trial, first []string) (judgement, error) {
	if len(first) > 0 {
		o, err := run(ctx, first)
		if err != nil {
			return judgement{}, err
		}
		if len(o.failed) > 0 {
			if again, err := run(ctx, first); err != nil || !again.passed {
				return judgement{Verdict: killed, Tests: o.killers()}, err
			}
		}
	}
	o, err := run(ctx, nil)
	if err != nil || o.passed {
		return judgement{Verdict: survived}, err
	}
	if o.timedOut {
		return judgement{Verdict: timedOut, Tests: o.killers()}, nil
	}
	if tests := o.tests(); len(tests) > 0 {
		if again, err := run(ctx, tests); err != nil || !again.passed {
			return judgement{Verdict: killed, Tests: o.killers()}, err
		}
	}
	again, err := run(ctx, nil)
	switch {
	case err != nil:
		return judgement{}, err
	case again.passed:
		return judgement{Verdict: survived, Note: "a failure did not come again:\n" + o.tail()}, nil
	}
	return judgement{Verdict: killed, Tests: again.killers(), Note: "only together with other tests"}, nil
}

// topLevel returns the tests that a later measurement runs first, from names of what failed.
func topLevel(killers []string) []string {
	var out []string
	for _, name := range killers {
		name, _, _ = strings.Cut(name, " ")
		name, _, _ = strings.Cut(name, "/")
		if name != "TestMain" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
