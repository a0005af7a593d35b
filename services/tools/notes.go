package tools

import "sync"

// notesWaiting is how many notifications of one call may wait for one caller: a
// second's worth of what the busiest services say.
const notesWaiting = 64

// notes hands the notifications of a run to those that want them. The zero value
// has no listeners. It is safe for concurrent use.
type notes struct {
	mu   sync.Mutex
	next int
	to   map[int]chan Notification
}

// listen returns what is told from now on. Whoever does not keep up misses some.
func (n *notes) listen() (heard <-chan Notification, stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.to == nil {
		n.to = make(map[int]chan Notification)
	}
	key, c := n.next, make(chan Notification, notesWaiting)
	n.next++
	n.to[key] = c
	return c, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.to, key)
	}
}

// tell hands out a notification. It never blocks. It reports how many listeners
// had no room for it.
func (n *notes) tell(what Notification) (missed int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.to {
		select {
		case c <- what:
		default:
			missed++
		}
	}
	return missed
}

// empty takes what is there without waiting.
func empty(heard <-chan Notification, told func(Notification)) {
	for {
		select {
		case n := <-heard:
			told(n)
		default:
			return
		}
	}
}
