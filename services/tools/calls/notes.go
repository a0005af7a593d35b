package calls

import (
	"sync"

	"github.com/waggle-dev/waggle/services/tools"
)

// Waiting is the number of notifications of one call that may wait for one caller: a second of the busiest services.
const Waiting = 64

// Listener receives the notifications of a run. The zero value receives none.
type Listener struct {
	C    <-chan tools.Notification
	stop func()
}

// Stop stops the delivery of notifications.
func (l Listener) Stop() {
	if l.stop != nil {
		l.stop()
	}
}

// Rest passes the waiting notifications to told, without waiting for more.
func (l Listener) Rest(told func(tools.Notification)) {
	for {
		select {
		case n := <-l.C:
			told(n)
		default:
			return
		}
	}
}

// notes passes the notifications of a run to the listeners. The zero value has none. It is safe for concurrent use.
type notes struct {
	mu   sync.Mutex
	next int
	to   map[int]chan tools.Notification
}

func (n *notes) listen() Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.to == nil {
		n.to = make(map[int]chan tools.Notification)
	}
	key, c := n.next, make(chan tools.Notification, Waiting)
	n.next++
	n.to[key] = c
	return Listener{C: c, stop: func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.to, key)
	}}
}

func (n *notes) tell(what tools.Notification) (missed int) {
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
