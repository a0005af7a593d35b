package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/team"
)

// Texts about the tests, after the table of the page.
const (
	teamPageTests = `
The messages of the table are sent, or taken, by a real run of real processes over real sockets in the named end-to-end
test, which fails if they are not. Every frame in those tests has to fit its JSON Schema. So have those of the envelope
form:

`
	teamPageUnmade = `
Waggle never sends these messages of the original protocol; a test that sees one fails:

`
)

// TeamPage returns the page of the messages of teams with the test of each, by TeamProof:
// the page is made without by the dialect, and may have them already.
func TeamPage(page string) string {
	proof := TeamProof()
	page, _, _ = strings.Cut(page, teamPageTests)
	var b strings.Builder
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		cells := strings.SplitN(line, "|", 7) // nothing, four cells, the rest
		switch {
		case len(cells) < 6:
		case strings.HasPrefix(line, "|-"):
			line = "|---|---|---|---|---|"
		case strings.HasPrefix(line, "| Message"):
			line = strings.Join(cells[:5], "|") + "| Test |"
		default:
			line = strings.Join(cells[:5], "|") + fmt.Sprintf("| `%s` |", proof[strings.Trim(cells[1], " `")])
		}
		b.WriteString(line + "\n")
	}
	b.WriteString(teamPageTests)
	for _, name := range []string{team.EnvelopeSchema, team.StreamEventSchema} {
		fmt.Fprintf(&b, "- `%s`: `%s`\n", name, proof[name])
	}
	b.WriteString(teamPageUnmade)
	for _, name := range slices.Sorted(maps.Keys(TeamUnmade)) {
		fmt.Fprintf(&b, "- `%s`: %s\n", name, TeamUnmade[name])
	}
	return b.String()
}
