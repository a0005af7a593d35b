// Command teampage adds to docs/generated/team-messages.md the test in which a real run
// shows each message of the protocol of teams.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/waggle-dev/waggle/e2e/harness"
)

func main() {
	page := flag.String("page", "", "file to add to")
	flag.Parse()
	text, err := os.ReadFile(*page)
	if err == nil {
		err = os.WriteFile(*page, []byte(harness.TeamPage(string(text))), 0o644) //nolint:gosec // documentation is public
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "teampage:", err)
		os.Exit(1)
	}
}
