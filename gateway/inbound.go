package gateway

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxBacklog bounds the messages of a socket that are read and not handled yet. A client's
// whole burst fits. The socket is not read while the backlog is full.
const maxBacklog = 64

func (r received) size() int {
	if r.oversize != nil {
		return len(r.oversize.Head) + len(r.oversize.Tail)
	}
	return len(r.message)
}

// add queues a message and reports whether the caller has to start a worker for it. It blocks
// until the queue has room.
func (b *backlog) add(r received, limit int64) (begin bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !b.over && len(b.waiting) > 0 && (len(b.waiting) >= maxBacklog || int64(b.bytes+r.size()) > limit) {
		b.changed.Wait()
	}
	if b.over {
		r.release()
		return false
	}
	b.waiting = append(b.waiting, r)
	b.bytes += r.size()
	begin = !b.busy
	b.busy = true
	return begin
}

// next returns the next message, or false if the queue is empty: the worker exits then.
func (b *backlog) next() (received, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed.Broadcast()
	if len(b.waiting) == 0 {
		b.waiting, b.busy = nil, false
		return received{}, false
	}
	r := b.waiting[0]
	b.waiting[0] = received{}
	b.waiting, b.bytes = b.waiting[1:], b.bytes-r.size()
	return r, true
}

// drop discards queued and future messages; the worker has exited.
func (b *backlog) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.waiting {
		r.release()
	}
	b.waiting, b.bytes, b.busy, b.over = nil, 0, false, true
	b.changed.Broadcast()
}

// still reports whether quiet would return at once.
func (b *backlog) still() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rests()
}

// rests is still for a caller that holds the lock.
func (b *backlog) rests() bool { return !b.busy && b.beside == 0 }

// done waits until the worker has exited.
func (b *backlog) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.busy {
		b.changed.Wait()
	}
}

// quiet waits until the worker has exited and all long requests have ended, at most for the given time.
func (b *backlog) quiet(maxWait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	late := false
	defer time.AfterFunc(maxWait, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		late = true
		b.changed.Broadcast()
	}).Stop()
	for !late && !b.rests() {
		b.changed.Wait()
	}
}

// count adds to the number of long requests.
func (b *backlog) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beside += n
	b.changed.Broadcast()
}

// take queues a message to be handled after those before it.
func (c *conn) take(r received) {
	if c.backlog.add(r, c.s.cfg.ReadLimit) {
		c.s.short.Go(c.work)
	}
}

// work handles messages until the backlog is empty. The goroutine that reads the socket
// outlives it, and counts for both in the server's wait group.
func (c *conn) work() {
	defer c.recovered()
	for {
		r, ok := c.backlog.next()
		if !ok {
			return
		}
		c.turn(r)
	}
}

// turn handles a message, within the limits.
func (c *conn) turn(r received) {
	defer r.release()
	if c.Finishing() || c.binding.Unmetered(c.ctx, r.message) || !c.allowed() {
		return
	}
	if !c.Await() {
		return
	}
	if c.within() {
		c.handle(r)
	}
}

// Await implements binding.Intake: it waits until the connection handles messages and reports whether it does.
// Messages before a goodbye count.
func (c *conn) Await() bool {
	select {
	case <-c.opened:
		return true
	default:
	}
	select {
	case <-c.opened:
		return true
	case <-c.Done():
		return false
	}
}

func (c *conn) handle(r received) {
	ctx, span := telemetry.Start(c.ctx, "receive "+c.binding.Name(), trace.SpanKindServer)
	if r.oversize != nil {
		telemetry.End(span, c.binding.Oversized(ctx, r.oversize))
		return
	}
	telemetry.End(span, c.binding.Handle(ctx, r.message))
}

// recovered ends only the socket whose dialect has panicked.
func (c *conn) recovered() {
	if r := recover(); r != nil {
		c.s.dep.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("panic recovered in connection")
		c.Finish(binding.CloseInternal, string(fault.Internal))
		c.backlog.drop()
	}
}

// FaultOf implements binding.Connection: it is asFault for the work of this socket. Work that the end of the gateway has
// cut off gets the gateway's fault.
func (c *conn) FaultOf(err error) *fault.Fault {
	why, ended := errors.AsType[*fault.Fault](context.Cause(c.ctx))
	f, known := errors.AsType[*fault.Fault](err)
	if ended && (!known || f.Code == fault.BusUnavailable) {
		return why
	}
	return c.s.asFault(err)
}

// Broken implements ws.Handler: earlier messages count and are answered.
func (c *conn) Broken() {
	if c.listens {
		c.backlog.done()
	}
}

// Underway implements binding.Intake.
func (c *conn) Underway(n int) { c.backlog.count(n) }

// within applies the quotas of messages per second. By the policy it either delays the client's
// messages or refuses this one with a fault.
func (c *conn) within() bool {
	p := c.client.Principal()
	for {
		wait, err := c.s.dep.Quota.Allow(p.Tenant, p.Subject)
		if err == nil {
			return true
		}
		if !c.policy.Slows {
			c.Tell(c.s.asFault(err))
			return false
		}
		select {
		case <-time.After(wait):
		case <-c.Done():
			return false
		}
	}
}
