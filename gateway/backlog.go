package gateway

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/waggle-dev/waggle/gateway/binding"
	"github.com/waggle-dev/waggle/gateway/transport/ws"
	"github.com/waggle-dev/waggle/internal/telemetry"
	"github.com/waggle-dev/waggle/proto-schemas/fault"
)

// maxBacklog bounds the messages that a socket has read and not handled: the burst that
// a client may send at once fits. While it is full the socket is not read.
const maxBacklog = 64

// backlog is what a socket has read and not handled yet. The messages are handled in
// their order, one at a time, by a goroutine that lives as long as there are some: the
// socket is read meanwhile, so that a slow message keeps no sign of life waiting.
type backlog struct {
	mu      sync.Mutex
	waiting []received
	bytes   int
	busy    bool          // something is being done
	beside  int           // long requests, which no message waits for
	over    bool          // what comes is dropped
	changed chan struct{} // closed at the next change; nil = nobody wants to know
}

// received is a message, or what is kept of one that is too large.
type received struct {
	message  []byte
	oversize *ws.Oversize // instead of message
	release  func()       // once it is handled, or dropped
}

func (r received) size() int {
	if r.oversize != nil {
		return len(r.oversize.Head) + len(r.oversize.Tail)
	}
	return len(r.message)
}

// add queues a message and reports whether somebody has to begin with it. It waits until
// there is room.
func (b *backlog) add(r received, limit int64) (begin bool) {
	b.await(func() bool {
		room := len(b.waiting) < maxBacklog && int64(b.bytes+r.size()) <= limit
		return b.over || len(b.waiting) == 0 || room
	}, nil)
	b.mu.Lock()
	defer b.mu.Unlock()
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

// next returns the message to be handled, or false if there is none: then nobody is at
// it any more.
func (b *backlog) next() (received, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell()
	if len(b.waiting) == 0 {
		b.waiting, b.busy = nil, false
		return received{}, false
	}
	r := b.waiting[0]
	b.waiting[0] = received{}
	b.waiting, b.bytes = b.waiting[1:], b.bytes-r.size()
	return r, true
}

// begin says that something is being done already.
func (b *backlog) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy = true
}

// drop forgets what there is and what comes: nobody is at it any more.
func (b *backlog) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.waiting {
		r.release()
	}
	b.waiting, b.bytes, b.busy, b.over = nil, 0, false, true
	b.tell()
}

// tell wakes whoever waits. The caller has locked.
func (b *backlog) tell() {
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// still reports whether quiet would return at once.
func (b *backlog) still() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.busy && b.beside == 0
}

// done waits until nothing is being done.
func (b *backlog) done() { b.await(func() bool { return !b.busy }, nil) }

// quiet waits until nothing is being done, not even beside the messages, or until it is
// late.
func (b *backlog) quiet(late <-chan time.Time) {
	b.await(func() bool { return !b.busy && b.beside == 0 }, late)
}

// count adds to the number of long requests.
func (b *backlog) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beside += n
	b.tell()
}

// await waits until the condition, which is asked with the lock held, is true.
func (b *backlog) await(condition func() bool, late <-chan time.Time) {
	for {
		b.mu.Lock()
		if condition() {
			b.mu.Unlock()
			return
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			return
		}
	}
}

// take has a message handled after those before it.
func (c *conn) take(r received) {
	if c.backlog.add(r, c.s.cfg.ReadLimit) {
		go c.work()
	}
}

// work handles messages until there are none. What it does is counted by the goroutine
// that reads, which outlives it.
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

// Await implements binding.Intake: it waits until messages are taken up, and reports whether they are: what was said
// before a goodbye counts.
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

// recovered ends the socket whose codec has a bug, and nobody else's.
func (c *conn) recovered() {
	if r := recover(); r != nil {
		c.s.dep.Logger.Error().Interface("panic", r).Bytes("stack", debug.Stack()).Msg("recover from panic of connection")
		c.Finish(binding.CloseInternal, string(fault.Internal))
		c.backlog.drop()
	}
}

// FaultOf implements binding.Reporter: it is asFault for what was being done for this socket: what was ended because
// the gateway ends is said to have been.
func (c *conn) FaultOf(err error) *fault.Fault {
	why, ended := errors.AsType[*fault.Fault](context.Cause(c.ctx))
	f, known := errors.AsType[*fault.Fault](err)
	if ended && (!known || f.Code == fault.BusUnavailable) {
		return why
	}
	return c.s.asFault(err)
}
