package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// product has mutants of all verdicts, and one that does not compile.
const product = `package one

import "os"

// Sum is tested.
func Sum(a, b int) int {
	return a + b
}

// Greet is not tested.
func Greet() {
	exit(1)
}

// Set is called, and no test looks.
func Set(to *int) {
	*to = 2
}

func exit(code int) { os.Exit(code) }
`

const tests = `package one

import "testing"

func TestSum(t *testing.T) {
	if Sum(1, 2) != 3 {
		t.Fatal("sum")
	}
}

func TestSet(t *testing.T) {
	n := 1
	Set(&n)
}
`

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// A whole measurement of a small workspace: verdicts, their reuse, and the comparison after a test was removed.
func TestMeasurementsAreCompared(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GOFLAGS", "")
	write(t, dir, "go.work", "go 1.26.0\n\nuse ./m\n")
	write(t, dir, "m/go.mod", "module x.org/m\n\ngo 1.26.0\n")
	write(t, dir, "m/one/one.go", product)
	write(t, dir, "m/one/one_test.go", tests)
	measure := func(out, before string) (map[string]*tried, *record, *campaign) {
		c := &campaign{root: dir, out: filepath.Join(dir, out), before: before, sample: 10, seed: 1, parallel: 2, progress: io.Discard}
		records, err := c.run(t.Context(), []string{"m/one"})
		require.NoError(t, err)
		require.Len(t, records, 1)
		byFunc := map[string]*tried{}
		for _, m := range records[0].Mutants {
			byFunc[m.Func] = m
		}
		return byFunc, records[0], c
	}
	was, before, c := measure("before", "")
	require.Equal(t, 4, before.All)
	require.Len(t, before.Mutants, 3, "without its one call, exit imports os for nothing")
	require.Equal(t, 2, c.done)
	require.Equal(t, killed, was["Sum"].Verdict)
	require.Equal(t, []string{"TestSum"}, was["Sum"].Tests)
	require.Equal(t, survived, was["Set"].Verdict)
	require.Equal(t, notCovered, was["Greet"].Verdict)

	_, again, c := measure("before", "")
	require.Zero(t, c.todo, "the verdicts are known")
	require.Equal(t, before, again)

	_, _, c = measure("other", filepath.Join(dir, "before"))
	require.Zero(t, c.todo, "the measurement to compare with has the same tests")

	write(t, dir, "m/one/one_test.go", strings.Replace(tests, "!= 3", "== 9", 1))
	is, now, _ := measure("after", filepath.Join(dir, "before"))
	require.Equal(t, survived, is["Sum"].Verdict)
	result := &comparison{}
	result.compare(before, now)
	require.Len(t, result.lost, 1)
	var said strings.Builder
	require.Error(t, result.show(&said))
	require.Contains(t, said.String(), "m/one/one.go:7 Sum: arithmetic `a + b` -> `-`, killed before by TestSum, survived now\n")
	text, err := os.ReadFile(filepath.Join(dir, "m/one/one.go"))
	require.NoError(t, err)
	require.Equal(t, product, string(text), "the sources stay as they are")

	write(t, dir, "m/one/one_test.go", strings.Replace(tests, "!= 3", "!= 4", 1))
	c = &campaign{root: dir, out: filepath.Join(dir, "broken"), sample: 10, seed: 1, parallel: 2, progress: io.Discard}
	records, err := c.run(t.Context(), []string{"m/one", "m/two"})
	require.ErrorContains(t, err, "m/one without a mutant: tests fail: [TestSum]")
	require.ErrorContains(t, err, "m/two")
	require.NotEmpty(t, records[0].Broken)
	require.Positive(t, records[0].left(), "nothing is known of a package whose tests fail")
}

func TestComparisonsTellLostFromGone(t *testing.T) {
	of := func(id string, v verdict) *tried {
		return &tried{mutant{ID: id, File: "x.go", Func: id}, judgement{Verdict: v}}
	}
	before := &record{Package: "p", Mutants: []*tried{
		of("kept", killed), of("lost", timedOut), of("bare", killed), of("gone", killed), of("never", survived), of("gained", survived),
	}}
	now := &record{Package: "p", Mutants: []*tried{
		of("kept", timedOut), of("lost", survived), of("bare", notCovered), of("never", survived), of("gained", killed),
	}}
	c := &comparison{}
	c.compare(before, now)
	require.Len(t, c.lost, 2)
	require.Contains(t, c.lost[0], "bare")
	require.Contains(t, c.lost[1], "lost")
	require.Len(t, c.gone, 1)
	require.Contains(t, c.gone[0], "gone")
	require.ErrorContains(t, c.show(io.Discard), "lost 2 mutants")

	c = &comparison{}
	c.compare(before, &record{Mutants: []*tried{of("kept", ""), of("lost", killed), of("bare", killed), of("gone", killed)}})
	require.Equal(t, 1, c.left)
	require.ErrorContains(t, c.show(io.Discard), "1 mutants")
	c = &comparison{}
	c.compare(before, before)
	require.NoError(t, c.show(io.Discard))
}

func TestTheTableCountsVerdicts(t *testing.T) {
	var out strings.Builder
	table(&out, []*record{{Package: "services/x", Mutants: []*tried{
		{judgement: judgement{Verdict: killed, Seconds: 2}}, {judgement: judgement{Verdict: survived, Seconds: 3}}, {},
	}}})
	require.Regexp(t, `services/x +3 +1 +1 +0 +0 +1 +5\n +all +3 +1 +1 +0 +0 +1 +5\n`, out.String())
}

// scripted returns a workshop with a shell script for the test binary.
func scripted(t *testing.T, text string) *workshop {
	t.Helper()
	w := &workshop{dir: t.TempDir(), of: &source{dir: t.TempDir()}}
	write(t, w.dir, "t", "#!/bin/sh\n"+text)
	require.NoError(t, os.Chmod(w.binary(), 0o700))
	return w
}

func TestALoopEndsAtTheDeadline(t *testing.T) {
	o, err := scripted(t, "exec sleep 60\n").within(t.Context(), 50*time.Millisecond, 50*time.Millisecond, nil)
	require.NoError(t, err)
	require.True(t, o.timedOut)
	require.Less(t, o.seconds, 60.0)
}

func TestNoProgramOfATestIsLeft(t *testing.T) {
	w := scripted(t, "sleep 61 >/dev/null 2>&1 &\necho $! >pid\nexit 1\n")
	o, err := w.within(t.Context(), time.Minute, time.Minute, nil)
	require.NoError(t, err)
	require.False(t, o.passed)
	pid, err := os.ReadFile(filepath.Join(w.of.dir, "pid"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ") // the system's first process may be slow to forget it
	}, time.Minute, time.Millisecond)
}
