package swarm

import "sync"

// item is what waits to be shown: a message, or an event of the connection.
type item struct {
	message *Message
	name    string
	err     error
}

// queue holds what waits for a handler that is busy. When it is full it takes nothing
// more until the handler has seen all that it holds.
type queue struct {
	items chan item

	mu     sync.Mutex
	behind bool // it has refused something, and refuses all until begin
	told   bool // and its owner knows that it has caught up
	closed bool
	seq    uint64 // the last that the handler returned from
	known  bool   // it has returned from one
	first  uint64 // the first that it was offered
}

func newQueue(size int) *queue {
	if size <= 0 {
		size = DefaultBuffer
	}
	return &queue{items: make(chan item, size)}
}

// offer queues an item and reports whether the queue had room. It does not block.
func (q *queue) offer(i item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.behind || q.closed {
		return false
	}
	select {
	case q.items <- i:
		if q.first == 0 && i.message != nil {
			q.first = i.message.Seq
		}
		return true
	default:
		q.behind = true
		return false
	}
}

// begin accepts items again after the queue was full.
func (q *queue) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.behind, q.told = false, false
}

// close ends deliver after the queued items.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.items)
	}
}

// deliver shows the items, one after the other, until the queue is closed. It calls again when the
// queue is empty after it refused items.
func (q *queue) deliver(show func(item), again func()) {
	for i := range q.items {
		show(i)
		if q.seen(i) {
			again()
		}
	}
}

// seen notes that the handler has returned, and reports whether it has caught up.
func (q *queue) seen(i item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i.message != nil && i.message.Seq > 0 {
		q.seq, q.known = i.message.Seq, true
	}
	if q.behind && !q.told && len(q.items) == 0 {
		q.told = true
		return true
	}
	return false
}

// shown returns the position of the last item from which the handler has returned; queued is that
// of the last queued one.
func (q *queue) shown(queued uint64) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.known:
		return q.seq
	case q.first > 0:
		return q.first - 1
	}
	return queued
}
