package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waggle-dev/waggle/proto-schemas/myagent"
)

//go:generate go run ../pages -dir ../../../docs/generated

const eventPageIntro = `# The events of the session protocol, and the tests that show them

<!-- Generated from e2e/harness/proof by "make generate". Do not edit. -->

Each event is sent, or taken, by a real run of real processes in the named end-to-end test, which fails if it is not.
Every frame in those tests has to fit the event's JSON Schema.

| Event | Direction | Test |
|---|---|---|
`

// EventPage returns the page that lists Proof.
func EventPage() string {
	var b strings.Builder
	b.WriteString(eventPageIntro)
	for _, e := range Events() {
		direction := "to the client"
		if slices.Contains(myagent.Inbound, e) {
			direction = "from the client"
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", e, direction, Proof[e])
	}
	return b.String()
}
