package forward

import (
	"sync"

	"github.com/waggle-dev/waggle/internal/cell"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Guests counts what this gateway has in progress for each tenant: connections, requests and commands.
type Guests struct {
	dir *cell.Directory
	own id.Name

	mu    sync.Mutex
	count map[id.Tenant]int
	over  func() // called when a tenant that must leave has left
}

// Enter counts work for a tenant until leave. It refuses tenants that this cell does not serve now: a count that began before
// such a change ends before the gateway reports the change.
func (g *Guests) Enter(t id.Tenant) (leave func(), err error) {
	return g.enter(t, false)
}

// Continue is Enter for what belongs to work that is counted already, such as the command of an open connection. It refuses
// nothing while the tenant has such work: its client learns from the end of the connection that the tenant moves, and not from
// a refused message, which the client would not repeat.
func (g *Guests) Continue(t id.Tenant) (leave func(), err error) {
	return g.enter(t, true)
}

func (g *Guests) enter(t id.Tenant, further bool) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if counted := further && g.count[t] > 0; !counted && !g.serves(t) {
		return nil, fault.New(fault.TenantMoving)
	}
	g.count[t]++
	return sync.OnceFunc(func() { g.left(t) }), nil
}

// serves reports whether this cell serves the tenant.
func (g *Guests) serves(t id.Tenant) bool {
	p := g.dir.Place(t)
	return p.Cell == g.own && !p.Moving()
}

func (g *Guests) left(t id.Tenant) {
	g.mu.Lock()
	g.count[t]--
	last := g.count[t] == 0
	if last {
		delete(g.count, t)
	}
	must := last && !g.serves(t)
	g.mu.Unlock()
	if must {
		g.over()
	}
}

// strangers returns the tenants with work in progress that this cell does not serve any more.
func (g *Guests) strangers() (out []id.Tenant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for t := range g.count {
		if !g.serves(t) {
			out = append(out, t)
		}
	}
	return out
}
