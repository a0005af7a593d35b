// Command eventpage writes docs/generated/myagent-events.md: each event of the
// session protocol and the test in which a real run shows it.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/waggle-dev/waggle/e2e/harness"
)

func main() {
	out := flag.String("out", "", "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, []byte(harness.EventPage()), 0o644); err != nil { //nolint:gosec // documentation is public
		fmt.Fprintln(os.Stderr, "eventpage:", err)
		os.Exit(1)
	}
}
