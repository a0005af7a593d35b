// Package calls keeps the calls of a tool service: it runs each id once, and remembers the outcome for repeats of the id.
//
// Callers claim a call before its tool begins, in a log of kind call, by a conditional append. Calls outside of tasks have
// their intent and outcome there, calls within tasks only the claim: the bus recognises copies of a command for a short
// time only, and a tool may run longer.
package calls

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/services/tools"
)

const (
	// Remembered is the time for which a call's outcome is kept for a repeat of the id: much longer than a worker needs to
	// notice a lost answer, or another worker to claim the job.
	Remembered = 10 * time.Minute
	// rememberBytes bounds the kept outcomes; the oldest are discarded first.
	rememberBytes = 64 << 20
	// outcomeCost is the memory of an outcome excluding its text.
	outcomeCost = 512
	// maxWaiting bounds the arguments of concurrent calls.
	maxWaiting = 32 << 20
	// FollowersPerCall bounds the callers that wait for the outcomes of a tenant's calls, by its places: a caller repeats
	// a call whose answer is lost.
	FollowersPerCall = 4
)

// Key identifies a call.
type Key struct {
	Tenant id.Tenant
	Scope  string
	ID     string
}

func keyOf(c tools.Call) Key { return Key{c.Tenant, c.Scope, c.ID} }

// Run is one call that runs or has run. It is safe for concurrent use.
type Run struct {
	key    Key
	digest [sha256.Size]byte // of tool and arguments
	bytes  int               // length of the arguments
	ctx    context.Context   //nolint:containedctx // The run's own: it outlives the caller.
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when result and err are set
	notes  notes

	result tools.Result
	err    *fault.Fault // nil after success
	ended  time.Time

	waiters int // callers that wait for the outcome; guarded by Table.mu
}

// Context ends when the run has ended or is cancelled.
func (r *Run) Context() context.Context { return r.ctx }

// Cancel cancels the run with a cause. Its callers get the outcome.
func (r *Run) Cancel(cause error) { r.cancel(cause) }

// Done is closed when the run has an outcome.
func (r *Run) Done() <-chan struct{} { return r.done }

// Listen returns a listener for the run's later notifications. A slow listener misses some.
func (r *Run) Listen() Listener { return r.notes.listen() }

// Tell passes a notification to all listeners without blocking. It returns the number of listeners without room for it.
func (r *Run) Tell(n tools.Notification) (missed int) { return r.notes.tell(n) }

// Outcome returns the result of a finished run. Errors are *fault.Fault.
func (r *Run) Outcome() (tools.Result, error) {
	if r.err != nil {
		return tools.Result{}, r.err
	}
	return r.result, nil
}

// Table keeps every running call, and each finished one for a limited time, so that no id runs twice. It is safe for
// concurrent use.
type Table struct {
	now   func() time.Time
	max   int // maximum of concurrent runs
	share int // maximum of those of one tenant

	maxWaiting, maxKept int // bytes

	mu      sync.Mutex
	open    bool // accepts new calls
	all     map[Key]*Run
	tenants map[id.Tenant]*usage // of the tenants with running calls
	running int
	waiting int           // bytes of arguments of running calls
	kept    []*Run        // outcomes, oldest first
	size    int           // of kept
	idle    chan struct{} // closed while no call runs
}

// usage is what one tenant's running calls take.
type usage struct {
	running int
	waiting int // bytes of their arguments
	callers int // that wait for their outcomes
}

// New returns an empty table with a limit of concurrent calls, and of those of one tenant.
func New(limit, share int, now func() time.Time) *Table {
	c := &Table{
		now: now, max: limit, share: share, maxWaiting: maxWaiting, maxKept: rememberBytes,
		open: true, all: make(map[Key]*Run), tenants: make(map[id.Tenant]*usage), idle: make(chan struct{}),
	}
	close(c.idle)
	return c
}

// Begin returns the run of the call: a fresh one, which the caller must execute and end, or the running or finished one of
// the same id. The caller counts as a waiter until Leave. A run keeps the values of ctx, not its end.
func (c *Table) Begin(ctx context.Context, call tools.Call) (r *Run, fresh bool, err error) {
	if call.ID == "" || len(call.ID) > maxCallID || len(call.Scope) > maxCallID {
		return nil, false, fault.Newf(fault.ToolBadInput, "A call needs an id of 1 to %d bytes.", maxCallID).At("id")
	}
	digest := sha256.Sum256([]byte(fmt.Sprintf("%q %q %q %t %s", call.Kind, call.Server, call.Tool, call.Raw, call.Arguments)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	if r, ok := c.all[keyOf(call)]; ok {
		if r.digest != digest {
			return nil, false, fault.Newf(fault.ToolBadInput, "This call id was already used with another tool or other arguments. Use a new id.").At("id")
		}
		if err := c.join(r); err != nil {
			return nil, false, err
		}
		return r, false, nil
	}
	if err := c.refusal(call); err != nil {
		return nil, false, err
	}
	r = &Run{key: keyOf(call), digest: digest, bytes: len(call.Arguments), done: make(chan struct{}), waiters: 1}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if c.running == 0 {
		c.idle = make(chan struct{})
	}
	c.all[r.key] = r
	c.take(r)
	return r, true, nil
}

// join counts one more caller of a run.
func (c *Table) join(r *Run) error {
	u := c.tenants[r.key.Tenant]
	if r.ended.IsZero() {
		if u.callers >= FollowersPerCall*c.share {
			return fault.Newf(fault.ToolsBusy, "Too many callers are waiting for tool calls of your tenant. Wait until one ends.")
		}
		u.callers++
	}
	r.waiters++
	return nil
}

// refusal returns why a fresh call gets no place, or nil. A tenant that has used up its own places leaves the others theirs.
func (c *Table) refusal(call tools.Call) error {
	u := c.tenants[call.Tenant]
	if u == nil {
		u = &usage{}
	}
	bytes := len(call.Arguments)
	switch {
	case !c.open:
		return fault.New(fault.ToolsDown)
	case u.running >= c.share || u.waiting+bytes > c.maxWaiting*c.share/c.max:
		return fault.New(fault.ToolsBusy)
	case c.running >= c.max || c.waiting+bytes > c.maxWaiting:
		return fault.Newf(fault.Overloaded, "Too many tool calls are running. Try again later.")
	}
	return nil
}

// take counts a fresh run with its first caller.
func (c *Table) take(r *Run) {
	u := c.tenants[r.key.Tenant]
	if u == nil {
		u = &usage{}
		c.tenants[r.key.Tenant] = u
	}
	u.running++
	u.waiting += r.bytes
	u.callers++
	c.running++
	c.waiting += r.bytes
}

// release is the reverse of take, for a run whose remaining callers get the outcome.
func (c *Table) release(r *Run) {
	u := c.tenants[r.key.Tenant]
	u.running--
	u.waiting -= r.bytes
	u.callers -= r.waiters
	if u.running == 0 {
		delete(c.tenants, r.key.Tenant)
	}
	c.running--
	c.waiting -= r.bytes
}

// maxCallID bounds the ids of calls and scopes: longer than any id of a provider.
const maxCallID = 512

// End sets the outcome of a run and wakes its waiters. The table keeps the outcome unless keep is false: then a repeat of
// the id runs again.
func (c *Table) End(r *Run, res tools.Result, err *fault.Fault, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.result, r.err, r.ended = res, err, c.now()
	c.release(r)
	if keep {
		c.kept = append(c.kept, r)
		c.size += r.cost()
	} else {
		delete(c.all, r.key)
	}
	r.cancel(nil)
	close(r.done)
	c.forget()
	if c.running == 0 {
		close(c.idle)
	}
}

func (r *Run) cost() int {
	images := 0
	for _, i := range r.result.Images {
		images += len(i.Data)
	}
	return outcomeCost + images + len(r.result.Text) + len(r.result.Data) + len(r.result.File) + len(r.key.ID) + len(r.key.Scope)
}

// forget discards outcomes beyond the limits of age and size.
func (c *Table) forget() {
	n := 0
	for n < len(c.kept) && (c.size > c.maxKept || c.now().Sub(c.kept[n].ended) > Remembered) {
		c.size -= c.kept[n].cost()
		delete(c.all, c.kept[n].key)
		n++
	}
	c.kept = slices.Delete(c.kept, 0, n)
}

// Leave removes a waiting caller. The last one cancels the run: Leave reports whether the caller was the last, or the run
// has ended or is stopping.
func (c *Table) Leave(r *Run) bool {
	c.mu.Lock()
	r.waiters--
	if r.ended.IsZero() {
		c.tenants[r.key.Tenant].callers--
	}
	last := r.waiters == 0
	c.mu.Unlock()
	if last {
		r.cancel(ErrCancelled)
	}
	return r.ctx.Err() != nil
}

// Find returns the run with the key, or nil.
func (c *Table) Find(k Key) *Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	return c.all[k]
}

// Close refuses new calls and returns a channel that is closed when no call runs.
func (c *Table) Close() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
	return c.idle
}

// Cancel refuses new calls and cancels every run.
func (c *Table) Cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
	for _, r := range c.all {
		r.cancel(cause)
	}
}
