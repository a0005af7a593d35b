package tools

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/fault"
	"github.com/waggle-dev/waggle/proto-schemas/id"
)

const (
	// remember is how long the outcome of a call is kept for a repeat of its id:
	// much longer than a worker needs to notice a lost answer, or another one to
	// take over its work.
	remember = 10 * time.Minute
	// rememberBytes bounds the outcomes kept; the oldest go first.
	rememberBytes = 64 << 20
	// outcomeCost is what an outcome occupies on top of its text.
	outcomeCost = 512
	// maxWaiting bounds the arguments of calls that run at once.
	maxWaiting = 32 << 20
)

// callKey identifies a call.
type callKey struct {
	tenant id.Tenant
	scope  string
	id     string
}

func keyOf(c Call) callKey { return callKey{c.Tenant, c.Scope, c.ID} }

// run is one call that runs or has run.
type run struct {
	key    callKey
	digest [sha256.Size]byte // of tool and arguments
	bytes  int               // of the arguments
	ctx    context.Context   //nolint:containedctx // The run's own: it outlives the caller.
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when result and err are set
	notes  notes

	result Result
	err    *fault.Fault // nil after success
	ended  time.Time

	waiters int // callers that want the outcome; guarded by calls.mu

	mu      sync.Mutex
	replies map[string]struct{} // reply subjects that are being served
}

// addReply notes that a reply subject is being served. It reports false if it is
// already.
func (r *run) addReply(to string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.replies[to]; ok {
		return false
	}
	if r.replies == nil {
		r.replies = make(map[string]struct{})
	}
	r.replies[to] = struct{}{}
	return true
}

func (r *run) dropReply(to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.replies, to)
}

// outcome returns the result of a run that is done.
func (r *run) outcome() (Result, error) {
	if r.err != nil {
		return Result{}, r.err
	}
	return r.result, nil
}

// calls keeps every call that runs, and those that have run until they are
// forgotten, so that no id runs twice. It is safe for concurrent use.
type calls struct {
	now func() time.Time
	max int // runs at once

	maxWaiting, maxKept int // bytes

	mu      sync.Mutex
	open    bool // takes new calls
	all     map[callKey]*run
	running int
	waiting int           // bytes of arguments of running calls
	kept    []*run        // outcomes, oldest first
	size    int           // of kept
	idle    chan struct{} // closed while nothing runs
}

func newCalls(limit int, now func() time.Time) *calls {
	c := &calls{
		now: now, max: limit, maxWaiting: maxWaiting, maxKept: rememberBytes,
		open: true, all: make(map[callKey]*run), idle: make(chan struct{}),
	}
	close(c.idle)
	return c
}

// begin returns the run of the call: a fresh one, which the caller must execute
// and end, or the one that runs or has run under the same id. The caller is one of
// its waiters until leave. A run keeps the values of ctx, not its end.
func (c *calls) begin(ctx context.Context, call Call) (r *run, fresh bool, err error) {
	if call.ID == "" || len(call.ID) > maxCallID || len(call.Scope) > maxCallID {
		return nil, false, fault.Newf(fault.ToolBadInput, "A call needs an id of 1 to %d bytes.", maxCallID).At("id")
	}
	digest := sha256.Sum256([]byte(fmt.Sprintf("%q %q %q %t %s", call.Kind, call.Server, call.Tool, call.Raw, call.Arguments)))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	if r, ok := c.all[keyOf(call)]; ok {
		if r.digest != digest {
			return nil, false, fault.Newf(fault.ToolBadInput, "The id of this call belongs to another one, with another tool or other arguments.").At("id")
		}
		r.waiters++
		return r, false, nil
	}
	switch {
	case !c.open:
		return nil, false, fault.New(fault.ToolsDown)
	case c.running >= c.max || c.waiting+len(call.Arguments) > c.maxWaiting:
		return nil, false, fault.Newf(fault.Overloaded, "Too many tool calls are running. Try again later.")
	}
	r = &run{key: keyOf(call), digest: digest, bytes: len(call.Arguments), done: make(chan struct{}), waiters: 1}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	if c.running == 0 {
		c.idle = make(chan struct{})
	}
	c.all[r.key] = r
	c.running++
	c.waiting += r.bytes
	return r, true, nil
}

// maxCallID bounds the ids of calls and scopes: longer than any id of a provider.
const maxCallID = 512

// end sets the outcome of a run and wakes its waiters. It is kept unless keep is
// false: then a repeat of the id runs again.
func (c *calls) end(r *run, res Result, err *fault.Fault, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.result, r.err, r.ended = res, err, c.now()
	c.running--
	c.waiting -= r.bytes
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

func (r *run) cost() int {
	return outcomeCost + len(r.result.Text) + len(r.result.Data) + len(r.key.id) + len(r.key.scope)
}

// forget drops outcomes that are too old or too many.
func (c *calls) forget() {
	n := 0
	for n < len(c.kept) && (c.size > c.maxKept || c.now().Sub(c.kept[n].ended) > remember) {
		c.size -= c.kept[n].cost()
		delete(c.all, c.kept[n].key)
		n++
	}
	c.kept = slices.Delete(c.kept, 0, n)
}

// leave says that a caller no longer waits. The last one cancels the run: leave
// reports whether it was the last, or the run is over or being stopped anyway.
func (c *calls) leave(r *run) bool {
	c.mu.Lock()
	r.waiters--
	last := r.waiters == 0
	c.mu.Unlock()
	if last {
		r.cancel(errCancelled)
	}
	return r.ctx.Err() != nil
}

// find returns the run with the key, or nil.
func (c *calls) find(k callKey) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	return c.all[k]
}

// close lets no new calls in and returns a channel that is closed when none runs.
func (c *calls) close() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
	return c.idle
}

// cancel lets no new calls in and cancels every run.
func (c *calls) cancel(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
	for _, r := range c.all {
		r.cancel(cause)
	}
}
