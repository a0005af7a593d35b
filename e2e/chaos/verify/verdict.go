package verify

import (
	"fmt"
	"strings"
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
	Promises
)

// PromiseNames head the columns of the table.
var PromiseNames = [Promises]string{"log", "resume", "work", "effects", "decisions", "isolation", "bounded"}

// Cell is how one promise stood one fault.
type Cell struct {
	Checked   int // facts
	Lost      int // missing facts
	Doubled   int // repeated facts
	Reordered int // facts in another order
	Broken    int // other breaches: data of another tenant, bounds
	Unknown   int // outcomes that were reported as unknown, which breaks no promise
	Notes     []string
}

// maxNotes keeps a broken run readable.
const maxNotes = 20

func (c *Cell) note(format string, v ...any) {
	if len(c.Notes) < maxNotes {
		c.Notes = append(c.Notes, fmt.Sprintf(format, v...))
	}
}

// AddLost and its siblings count a breach and note it.
func (c *Cell) AddLost(format string, v ...any) { c.Lost++; c.note("lost: "+format, v...) }

func (c *Cell) doubled(format string, v ...any)   { c.Doubled++; c.note("doubled: "+format, v...) }
func (c *Cell) reordered(format string, v ...any) { c.Reordered++; c.note("reordered: "+format, v...) }

// AddBroken counts a breach that is neither a loss, nor a repetition, nor another order.
func (c *Cell) AddBroken(format string, v ...any) { c.Broken++; c.note("broken: "+format, v...) }

// once checks that something is there exactly once.
func (c *Cell) once(n int, what string) {
	c.Checked++
	switch {
	case n == 0:
		c.AddLost("%s", what)
	case n > 1:
		c.doubled("%s: %d times", what, n)
	}
}

// Breaches is how often the promise was broken.
func (c *Cell) Breaches() int { return c.Lost + c.Doubled + c.Reordered + c.Broken }

// OK reports whether the promise was kept. One that was not looked at was not.
func (c *Cell) OK() bool { return c.Checked > 0 && c.Breaches() == 0 }

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
type Verdict [Promises]Cell

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
			out = append(out, PromiseNames[i]+": "+n)
		}
	}
	return out
}
