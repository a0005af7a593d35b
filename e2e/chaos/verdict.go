package chaos

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// The promises of the architecture, in its order.
const (
	PromiseLog = iota
	PromiseResume
	PromiseWork
	PromiseEffects
	PromiseDecisions
	PromiseIsolation
	PromiseBounded
	promises
)

// promiseNames head the columns of the table.
var promiseNames = [promises]string{"log", "resume", "work", "effects", "decisions", "isolation", "bounded"}

// Cell is how one promise stood one fault.
type Cell struct {
	Checked   int // facts that were looked at
	Lost      int // what is not there
	Doubled   int // what is there more than once
	Reordered int // what is there in another order
	Broken    int // other breaches: what another tenant has seen, bounds
	Unknown   int // what nobody can know and was said to be unknown: no breach
	Notes     []string
}

// maxNotes keeps a broken run readable.
const maxNotes = 20

func (c *Cell) note(format string, v ...any) {
	if len(c.Notes) < maxNotes {
		c.Notes = append(c.Notes, fmt.Sprintf(format, v...))
	}
}

func (c *Cell) lost(format string, v ...any)      { c.Lost++; c.note("lost: "+format, v...) }
func (c *Cell) doubled(format string, v ...any)   { c.Doubled++; c.note("doubled: "+format, v...) }
func (c *Cell) reordered(format string, v ...any) { c.Reordered++; c.note("reordered: "+format, v...) }
func (c *Cell) broken(format string, v ...any)    { c.Broken++; c.note("broken: "+format, v...) }

// once checks that something is there exactly once.
func (c *Cell) once(n int, what string) {
	c.Checked++
	switch {
	case n == 0:
		c.lost("%s", what)
	case n > 1:
		c.doubled("%s: %d times", what, n)
	}
}

// OK reports whether the promise was kept. One that was not looked at was not.
func (c *Cell) OK() bool { return c.Checked > 0 && c.Lost+c.Doubled+c.Reordered+c.Broken == 0 }

// String is the cell of the table.
func (c *Cell) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{c.Lost, "lost"}, {c.Doubled, "doubled"}, {c.Reordered, "reordered"}, {c.Broken, "broken"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.what, p.n))
		}
	}
	switch {
	case c.Checked == 0 && parts == nil:
		return "unknown"
	case parts == nil:
		parts = []string{"ok"}
	}
	text := fmt.Sprintf("%s (%d)", strings.Join(parts, ", "), c.Checked)
	if c.Unknown > 0 {
		text += fmt.Sprintf(", unknown %d", c.Unknown)
	}
	return text
}

// Verdict is how all promises stood one fault.
type Verdict [promises]Cell

// OK reports whether all promises were kept.
func (v *Verdict) OK() bool {
	for i := range v {
		if !v[i].OK() {
			return false
		}
	}
	return true
}

// Notes are what was found to be wrong.
func (v *Verdict) Notes() (out []string) {
	for i := range v {
		for _, n := range v[i].Notes {
			out = append(out, promiseNames[i]+": "+n)
		}
	}
	return out
}

// Row is one fault of the table.
type Row struct {
	Fault    string
	Verdict  *Verdict // nil: it was not possible
	Why      string   // it was not possible
	Evidence []string // that it happened
	Units    int      // of work that the clients did meanwhile
	Returns  int      // of the client that came back most often
	Seconds  float64
}

// Table writes the rows, and how to see the run again.
func Table(w io.Writer, seed uint64, rows []Row) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "fault\t%s\tunits\treturns\ts\n", strings.Join(promiseNames[:], "\t")) // a test's log does not fail
	for _, r := range rows {
		if r.Verdict == nil {
			_, _ = fmt.Fprintf(t, "%s\tnot possible here: %s\n", r.Fault, r.Why)
			continue
		}
		_, _ = fmt.Fprintf(t, "%s", r.Fault)
		for i := range r.Verdict {
			_, _ = fmt.Fprintf(t, "\t%s", r.Verdict[i].String())
		}
		_, _ = fmt.Fprintf(t, "\t%d\t%d\t%.0f\n", r.Units, r.Returns, r.Seconds)
	}
	_ = t.Flush()
	for _, r := range rows {
		for _, e := range r.Evidence {
			_, _ = fmt.Fprintf(w, "%s: %s\n", r.Fault, e)
		}
	}
	_, _ = fmt.Fprintf(w, "seed %d: WAGGLE_CHAOS_SEED=%d shows this run again\n", seed, seed)
}
