package e2e_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/waggle-dev/waggle/e2e/harness/process"
)

// TestMain says at the end in how many lines of how many processes secrets were looked
// for, and fails if one was found.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := patient(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if !endShared() && code == 0 {
		code = 1
	}
	code = process.Audit(code)
	if err := uninstall(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// together is how many tests run at once: they wait for processes more than they compute.
const together = 4

// patient has more tests run at once than the machine has processors, unless -parallel says how many.
func patient() error {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(max(together, runtime.GOMAXPROCS(0))))
}
