// Command mutants measures how many small faults in packages their own tests notice: it makes a sample of faults, one at a time,
// and runs the tests of the package on each.
//
//	mutants -out FOLDER internal/eventlog services/ledger         measure; run it again to continue
//	mutants -out FOLDER -compare BEFORE internal/eventlog         and fail if a fault that was noticed before is not
//
// No source file changes: the go command reads the faulty file as an overlay. The sample depends on the seed and on the product
// code only, so that measurements before and after a change of tests have the same faults. Faults in code that no test runs
// count as not noticed. Verdicts are kept in FOLDER and hold as long as the package, its tests and what they import in the
// workspace are the same.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"syscall"
	"time"
)

func main() {
	c := &campaign{progress: os.Stderr}
	flag.StringVar(&c.out, "out", ".cache/mutants", "folder of the results, one file for each package")
	flag.StringVar(&c.before, "compare", "", "folder of earlier results: fail if the tests have lost a mutant")
	flag.IntVar(&c.sample, "sample", 40, "mutants of each package")
	flag.Int64Var(&c.seed, "seed", 1, "chooses the sample")
	flag.IntVar(&c.parallel, "parallel", 3, "mutants at a time: tests mostly wait")
	budget := flag.Duration("budget", time.Hour, "stop after this time with the results so far")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.measure(ctx, *budget, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// measure runs the campaign and shows its results.
func (c *campaign) measure(ctx context.Context, budget time.Duration, names []string) error {
	for i, name := range names {
		names[i] = path.Clean(name)
	}
	var err error
	if c.root, err = os.Getwd(); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	records, err := c.run(within, names)
	table(os.Stdout, records)
	if within.Err() != nil {
		c.say("stopped before the end: run it again to go on")
	}
	if c.before == "" {
		return err
	}
	result := &comparison{}
	for _, now := range records {
		before, failed := readRecord(c.before, now.Package)
		if err = errors.Join(err, failed); before != nil {
			result.compare(before, now)
		}
	}
	return errors.Join(err, result.show(os.Stdout))
}
