package quota

import "github.com/waggle-dev/waggle/proto-schemas/id"

// Share is the part of a tenant's messages that this gateway lets through.
func (c *Connections) Share(t id.Tenant) float64 { return c.share(owner{tenant: t}) }

// Kill ends the keeper as if its process had died: what it had stays in the ledger.
func (c *Connections) Kill() {
	c.counter.end()
	c.counter.close(false)
	c.ledger.Close()
}
