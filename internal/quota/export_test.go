package quota

import (
	"context"

	"github.com/waggle-dev/waggle/internal/testsignal"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// until waits until it is so: it looks after each change of the copy.
func (l *Ledger) until(t testsignal.TB, is func() bool) {
	t.Helper()
	w := l.changed.Arm(t)
	defer w.Disarm()
	w.Until(is)
}

// Until waits for a change of the open connections after which it is so.
func (c *Connections) Until(t testsignal.TB, is func() bool) {
	t.Helper()
	c.ledger.until(t, is)
}

// Until waits for a change of the places after which it is so.
func (e *Entities) Until(t testsignal.TB, is func() bool) {
	t.Helper()
	e.open.ledger.until(t, is)
}

// Until waits for a change of the days' holdings of a resource after which it is so.
func (d *Daily) Until(t testsignal.TB, r id.Name, is func() bool) {
	t.Helper()
	d.books[r].ledger.until(t, is)
}

// Share is the part of a tenant's messages that this gateway allows.
func (c *Connections) Share(t id.Tenant) float64 { return c.share(owner{tenant: t}) }

// Kill ends the keeper as if its process had died: its holdings stay in the ledger.
func (c *Connections) Kill() {
	c.counter.end()
	c.counter.close(false)
	c.ledger.Close()
}

// Used is the used amount of a resource on a day (20060102).
func (d *Daily) Used(r id.Name, t id.Tenant, principal, day string) Sums {
	l := d.books[r].ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(t, id.EntityFromExternal(principal), func(group string) bool { return group == day })
}

// Sweep runs one sweep, and returns the number of returned holdings.
func (d *Daily) Sweep(ctx context.Context, r id.Name) int { return d.books[r].ledger.sweepOnce(ctx) }

// Kill ends the keeper as if its process had died.
func (d *Daily) Kill() {
	for _, b := range d.books {
		b.counter.end()
		b.counter.close(false)
		b.ledger.Close()
	}
}
