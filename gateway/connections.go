package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/waggle-dev/waggle/gateway/admission"
	"github.com/waggle-dev/waggle/gateway/arrival"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

// connection is a client's link to the gateway, over any transport. Only flush blocks.
type connection interface {
	// Protocol names its protocol in metrics.
	Protocol() string
	// Settle checks whether the services that its messages wait for have started.
	Settle()
	// retire asks its client to reconnect, after the requests in progress, and says why.
	retire(*fault.Fault)
	// tenant returns the tenant of its client; zero before that has authenticated.
	tenant() id.Tenant
	// left is closed when the connection has ended.
	left() <-chan struct{}
	// flush sends its acknowledgements. It may block.
	flush(ctx context.Context)
	// queued returns the bytes that wait to be written, except for those that the hub counts.
	queued() int
	// listed returns what operators see of it.
	listed() listing
}

// connections are those of one gateway, and the work that continues for them.
type connections struct {
	most int // of clients that have authenticated

	mu       sync.Mutex
	set      map[connection]struct{}
	entered  int // clients that have authenticated
	draining bool
	stopped  bool
	work     sync.WaitGroup // readers and the HTTP servers
}

func newConnections(most int) *connections {
	return &connections{most: most, set: map[connection]struct{}{}}
}

// reserve lists the connection until the pass ends, unless the gateway is draining.
func (l *connections) reserve(c connection, pass *admission.Pass) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining {
		return fault.New(fault.Draining)
	}
	l.set[c] = struct{}{}
	l.work.Add(1)
	pass.Add(func() {
		l.mu.Lock()
		delete(l.set, c)
		l.mu.Unlock()
		l.work.Done()
	})
	return nil
}

// enter counts a connection whose client has authenticated, unless the gateway is full.
func (l *connections) enter(pass *admission.Pass, a *arrival.Connection) error {
	l.mu.Lock()
	full := l.entered >= l.most
	if !full {
		l.entered++
	}
	l.mu.Unlock()
	if full {
		return fault.New(fault.Overloaded)
	}
	a.Admitted()
	pass.Add(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.entered--
	})
	return nil
}

// count returns how many are open.
func (l *connections) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.set)
}

// full reports whether as many clients with credentials are connected as may be.
func (l *connections) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entered >= l.most
}

// open returns the connections.
func (l *connections) open() []connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]connection, 0, len(l.set))
	for c := range l.set {
		out = append(out, c)
	}
	return out
}

// queued returns the bytes that wait to be written, except for those that the hub counts.
func (l *connections) queued() (n int) {
	for _, c := range l.open() {
		n += c.queued()
	}
	return n
}

// settle tells the connections that the services run which they may wait for.
func (l *connections) settle() {
	for _, c := range l.open() {
		c.Settle()
	}
}

// flush sends the acknowledgements of all connections at intervals, until the context ends.
func (l *connections) flush(ctx context.Context, every time.Duration) {
	l.visit(ctx, every, func(c connection) { c.flush(ctx) })
}

// logLags looks at intervals for viewers that have begun to lag or have caught up, and logs them, until the context ends. A
// connection that is stuck in a write could not.
func (l *connections) logLags(ctx context.Context, every time.Duration, clock func() time.Time, logger zerolog.Logger) {
	l.visit(ctx, every, func(c connection) { c.listed().client.Watches().Tick(clock(), logger) })
}

// visit calls f with each connection at intervals, until the context ends.
func (l *connections) visit(ctx context.Context, every time.Duration, f func(connection)) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, c := range l.open() {
			f(c)
		}
	}
}

// drain has reserve refuse new connections.
func (l *connections) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.draining = true
}

func (l *connections) isDraining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draining
}

// sendAway asks the clients to reconnect, one after the other within the time, and waits until all have left. ended stops it, because
// they are cut off.
func (l *connections) sendAway(ctx context.Context, within time.Duration, ended <-chan struct{}) error {
	all := l.open()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for i, c := range all {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("gateway: %d sockets left: %w", len(all)-i, ctx.Err())
		case <-ended:
			return nil
		}
		c.retire(fault.New(fault.Draining))
		pause.Reset(within / time.Duration(len(all)))
	}
	for _, c := range all {
		select {
		case <-c.left():
		case <-ctx.Done():
			return fmt.Errorf("gateway: wait for sockets: %w", ctx.Err())
		}
	}
	return nil
}

// sendAwayTenants asks the clients of tenants that the cell does not serve any more to reconnect.
func (l *connections) sendAwayTenants(tenants []id.Tenant) {
	for _, c := range l.open() {
		if slices.Contains(tenants, c.tenant()) {
			c.retire(fault.New(fault.TenantMoving))
		}
	}
}

// async runs f, for which the end of the gateway waits, and returns false if that has stopped.
func (l *connections) async(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return false
	}
	l.work.Go(f)
	return true
}

// stop has async and reserve refuse.
func (l *connections) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped, l.draining = true, true
}

func (l *connections) isStopped() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stopped
}
