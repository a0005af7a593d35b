package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// tried is a mutant of the sample with its verdict: none if it has not been tried yet.
type tried struct {
	mutant
	judgement
}

// record is the file of one package.
type record struct {
	Package string  `json:"package"`
	Inputs  string  `json:"inputs"` // the hash of the product code and the tests
	Seed    int64   `json:"seed"`
	Sample  int     `json:"sample"`
	All     int     `json:"all"`             // mutants that the package has, compiling or not
	Seconds float64 `json:"seconds"`         // of the tests without a mutant
	Flaky   string  `json:"flaky,omitempty"` // output of tests that failed without a mutant, and then passed
	Broken  string  `json:"broken,omitempty"`

	Mutants []*tried `json:"mutants"`
}

func file(dir, name string) string {
	return filepath.Join(dir, strings.ReplaceAll(name, "/", "_")+".json")
}

// readRecord returns the record of a package in a folder, or nil.
func readRecord(dir, name string) (*record, error) {
	path := file(dir, name)
	text, err := os.ReadFile(path) //nolint:gosec // the folder is the caller's
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// write replaces the file as a whole, so that an end of the program leaves a complete one.
func (r *record) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	path := file(dir, r.Package)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// adopt takes what another record says of the same mutants, if it has the same inputs.
func (r *record) adopt(known *record) {
	if known == nil || known.Inputs != r.Inputs {
		return
	}
	r.Seconds, r.Flaky = known.Seconds, known.Flaky
	verdicts := map[string]judgement{}
	for _, m := range known.Mutants {
		verdicts[m.ID] = m.judgement
	}
	for _, m := range r.Mutants {
		if j := verdicts[m.ID]; j.Verdict != "" {
			m.judgement = j
		}
	}
}

// kills returns the killed mutants by identity.
func (r *record) kills() map[string]*tried {
	out := map[string]*tried{}
	if r == nil {
		return out
	}
	for _, m := range r.Mutants {
		if m.Verdict.isKilled() {
			out[m.ID] = m
		}
	}
	return out
}

// left counts the mutants without a verdict.
func (r *record) left() (n int) {
	for _, m := range r.Mutants {
		if m.Verdict == "" {
			n++
		}
	}
	return n
}

// table shows the counts of each package.
func table(out io.Writer, all []*record) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, counts map[verdict]int, mutants int, seconds float64) {
		_, _ = fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.0f\t\n", name, mutants, counts[killed], counts[survived], counts[notCovered],
			counts[timedOut], counts[""], seconds)
	}
	_, _ = fmt.Fprintln(t, "package\tmutants\tkilled\tsurvived\tnot covered\ttimed out\tleft\tseconds\t")
	total, mutants, sum := map[verdict]int{}, 0, 0.0
	for _, r := range all {
		counts, seconds := map[verdict]int{}, 0.0
		for _, m := range r.Mutants {
			counts[m.Verdict]++
			total[m.Verdict]++
			seconds += m.Seconds
		}
		row(r.Package, counts, len(r.Mutants), seconds)
		mutants, sum = mutants+len(r.Mutants), sum+seconds
	}
	row("all", total, mutants, sum)
	_ = t.Flush() // an error of standard output
}
