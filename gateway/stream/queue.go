package stream

import (
	"sync"

	"github.com/waggle-dev/waggle/gateway/transport"
)

// queue is messages on their way to a transport. Each knows the position after which a viewer resumes that has all messages
// before it.
type queue struct {
	ms     []*transport.Message
	behind []uint64
}

// queues are for what several entries become, so that they leave in few writes.
var queues = sync.Pool{New: func() any { return new(queue) }}

// add appends messages.
func (q *queue) add(behind uint64, ms ...*transport.Message) {
	q.ms = append(q.ms, ms...)
	for range ms {
		q.behind = append(q.behind, behind)
	}
}

// send sends what the transport has room for, and reports whether that is all.
func (q *queue) send(to transport.Transport) bool {
	n := to.Send(q.ms...)
	clear(q.ms[:n])
	q.ms, q.behind = q.ms[n:], q.behind[n:]
	return len(q.ms) == 0
}

// clear empties the queue and keeps its memory.
func (q *queue) clear() {
	clear(q.ms)
	q.ms, q.behind = q.ms[:0], q.behind[:0]
}
