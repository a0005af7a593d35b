// Command swarmpage writes docs/generated/asp-messages.md: each message of the Agent
// Swarm Protocol and the test in which a real run shows it.
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
	if err := os.WriteFile(*out, []byte(harness.SwarmPage()), 0o644); err != nil { //nolint:gosec // documentation is public
		fmt.Fprintln(os.Stderr, "swarmpage:", err)
		os.Exit(1)
	}
}
