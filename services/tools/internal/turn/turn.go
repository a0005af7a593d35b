// Package turn limits how many checks of a tenant run at once: a check keeps a processor busy and cannot be stopped, so that
// one tenant's checks would otherwise take all processors.
package turn

import (
	"context"
	"runtime"
	"sync"

	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// Turns gives each tenant the same number of turns at once. It is safe for concurrent use. A nil one gives any number.
type Turns struct {
	limit int

	mu sync.Mutex
	of map[id.Tenant]*queue // of the tenants that have a turn or wait for one
}

// queue holds the turns of one tenant.
type queue struct {
	taken chan struct{}
	users int // turns taken and callers waiting
}

// Share is the number of turns that leaves most processors to other tenants: a fourth of them, and at least one.
func Share() int { return max(1, runtime.GOMAXPROCS(0)/4) }

// New returns turns of which each tenant may have limit at once.
func New(limit int) *Turns { return &Turns{limit: limit, of: make(map[id.Tenant]*queue)} }

// Take waits for a turn of the tenant. The caller ends it with done. The error is the cause of ctx's end.
func (t *Turns) Take(ctx context.Context, tenant id.Tenant) (done func(), err error) {
	if t == nil {
		return func() {}, nil
	}
	q := t.join(tenant)
	select {
	case q.taken <- struct{}{}:
		return func() {
			<-q.taken
			t.leave(tenant, q)
		}, nil
	case <-ctx.Done():
		t.leave(tenant, q)
		return nil, context.Cause(ctx)
	}
}

func (t *Turns) join(tenant id.Tenant) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.of[tenant]
	if q == nil {
		q = &queue{taken: make(chan struct{}, t.limit)}
		t.of[tenant] = q
	}
	q.users++
	return q
}

func (t *Turns) leave(tenant id.Tenant, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(t.of, tenant)
	}
}
