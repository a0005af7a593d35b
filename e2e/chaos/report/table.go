package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/waggle-dev/waggle/e2e/chaos/verify"
)

// Row is one fault of the table.
type Row struct {
	Fault    string
	Verdict  *verify.Verdict // nil: it was not possible
	Why      string          // it was not possible
	Evidence []string        // that it happened
	Units    int             // of work that the clients did meanwhile
	Returns  int             // of the client that came back most often
	Seconds  float64
	Graceful *Graceful // of a fault that no client may notice
}

// Graceful is what clients had of a restart that they were not to notice.
type Graceful struct {
	Clients  int // at work
	Restarts int // of gateways; a client may come back as often
	Asked    int // commands that clients sent
	Failed   int // of them: refused, lost, or without an end
	Events   int // that clients were to see
	Missed   int // of them, or seen twice, or in another order
}

// Table writes the rows as a table of Markdown, what shows that the faults happened, and
// how to see the run again.
func Table(w io.Writer, seed uint64, rows []Row) {
	var b strings.Builder
	fmt.Fprintf(&b, "| fault | %s | units | returns | s |\n|---|%s---:|---:|---:|\n",
		strings.Join(verify.PromiseNames[:], " | "), strings.Repeat("---|", int(verify.Promises)))
	for _, r := range rows {
		if r.Verdict == nil {
			fmt.Fprintf(&b, "| %s | not possible here: %s |%s\n", r.Fault, r.Why, strings.Repeat(" |", int(verify.Promises)+2))
			continue
		}
		fmt.Fprintf(&b, "| %s |", r.Fault)
		for i := range r.Verdict {
			fmt.Fprintf(&b, " %s |", r.Verdict[i].String())
		}
		fmt.Fprintf(&b, " %d | %d | %.0f |\n", r.Units, r.Returns, r.Seconds)
	}
	unnoticed(&b, rows)
	fmt.Fprintln(&b)
	for _, r := range rows {
		for _, e := range r.Evidence {
			fmt.Fprintf(&b, "- %s: %s\n", r.Fault, e)
		}
	}
	fmt.Fprintf(&b, "\nseed %d: WAGGLE_CHAOS_SEED=%d shows this run again\n", seed, seed)
	_, _ = io.WriteString(w, b.String()) // a test's log does not fail
}

// unnoticed writes what clients had of graceful faults.
func unnoticed(b *strings.Builder, rows []Row) {
	head := "\n| clients must not notice | clients | gateways restarted | reconnects of a client, at most | commands | failed | events seen | lost, doubled, reordered |\n" +
		"|---|---:|---:|---:|---:|---:|---:|---:|\n"
	for _, r := range rows {
		g := r.Graceful
		if g == nil {
			continue
		}
		fmt.Fprintf(b, "%s| %s | %d | %d | %d | %d | %d | %d | %d |\n", head, r.Fault, g.Clients, g.Restarts, r.Returns, g.Asked, g.Failed, g.Events, g.Missed)
		head = ""
	}
}
