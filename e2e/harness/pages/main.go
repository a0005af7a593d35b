// Command pages writes the generated pages that name, for each message of a protocol, the test in which a real run
// shows it: docs/generated/myagent-events.md, asp-messages.md and team-messages.md.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/waggle-dev/waggle/e2e/harness/proof"
)

func main() {
	dir := flag.String("dir", "", "folder of the pages")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

// write writes two pages and adds the tests to the third, which the dialect generates.
func write(dir string) error {
	team := filepath.Join(dir, "team-messages.md")
	text, err := os.ReadFile(team) //nolint:gosec // a page of the repository
	if err != nil {
		return err
	}
	for name, page := range map[string]string{
		filepath.Join(dir, "myagent-events.md"): proof.EventPage(), filepath.Join(dir, "asp-messages.md"): proof.SwarmPage(),
		team: proof.TeamPage(string(text)),
	} {
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil { //nolint:gosec // documentation is public
			return err
		}
	}
	return nil
}
