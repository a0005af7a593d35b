package admission

import (
	"container/list"
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// laneHold is how long a turn lasts at most while others wait: many times what an answer to a stranger takes.
	laneHold = 5 * time.Millisecond
	// mostStrangers is how many of them wait while no connection is accepted: those that come are served long before as many
	// others as the pool holds displace them, and the kernel keeps the rest waiting.
	mostStrangers = 64
)

// Lane gives turns to connections that have not authenticated: the gateway works on few of them at a time. The others wait
// for their turn, and not for a processor, so that no user's work queues after all of theirs. It is safe for concurrent use.
type Lane struct {
	mu       sync.Mutex
	free     int                // turns that none has; no connection waits while this is positive
	with     []*Turn            // have a turn
	waiting  [classes]list.List // of *Turn, oldest first
	next     Class              // that comes first
	watching bool               // for turns that last too long
}

// Class orders those that wait. Each class gets a turn after the other.
type Class int

// Classes.
const (
	Arriving Class = iota // a connection to be accepted
	Known                 // the last client had authenticated
	Strange
	classes
)

// NewLane returns the lane of a process: half of its processors, at least one, may work on strangers.
func NewLane() *Lane { return newLane(max(1, runtime.GOMAXPROCS(0)/2)) }

func newLane(turns int) *Lane { return &Lane{free: turns} }

// Turn is what one connection takes when it has something to work on.
type Turn struct {
	lane  *Lane
	ready chan struct{} // made when the connection has to wait for the first time

	// The lock of the lane guards these.
	has, waits bool
	since      time.Time
}

// Turn returns the turn of a connection, which it does not have yet.
func (l *Lane) Turn() *Turn { return &Turn{lane: l} }

// Take waits for the turn, unless the connection has it, or waits already.
func (t *Turn) Take(c Class) {
	l := t.lane
	l.mu.Lock()
	switch {
	case t.has || t.waits:
		l.mu.Unlock()
		return
	case l.free > 0:
		l.free--
		l.give(t)
		l.mu.Unlock()
		return
	}
	if t.ready == nil {
		t.ready = make(chan struct{}, 1)
	}
	t.waits = true
	l.waiting[c].PushBack(t)
	l.watch()
	l.mu.Unlock()
	<-t.ready
}

// Leave gives the turn to the next connection.
func (t *Turn) Leave() {
	t.lane.mu.Lock()
	defer t.lane.mu.Unlock()
	t.lane.leave(t)
}

// leave is Leave. The caller has locked.
func (l *Lane) leave(t *Turn) {
	if !t.has {
		return
	}
	t.has = false
	i := slices.Index(l.with, t)
	l.with = slices.Delete(l.with, i, i+1)
	l.pass()
}

// pass gives a turn to the next that waits. The caller has locked.
func (l *Lane) pass() {
	for range classes {
		c := l.next
		l.next = (l.next + 1) % classes
		if c == Arriving && l.waiting[Strange].Len() >= mostStrangers {
			continue
		}
		if oldest := l.waiting[c].Front(); oldest != nil {
			t, _ := l.waiting[c].Remove(oldest).(*Turn)
			t.waits = false
			l.give(t)
			t.ready <- struct{}{} // has room
			return
		}
	}
	l.free++
}

// give gives a turn. The caller has locked.
func (l *Lane) give(t *Turn) {
	t.has, t.since = true, time.Now()
	l.with = append(l.with, t)
}

// watch takes turns that last too long from their connections, while others wait. The caller has locked.
func (l *Lane) watch() {
	if l.watching {
		return
	}
	l.watching = true
	time.AfterFunc(laneHold, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watching = false
		due := time.Now().Add(-laneHold)
		for _, t := range slices.Clone(l.with) {
			if !t.since.After(due) {
				l.leave(t)
			}
		}
		if l.waiting[Arriving].Len()+l.waiting[Known].Len()+l.waiting[Strange].Len() > 0 {
			l.watch()
		}
	})
}

type turnKey struct{}

// Within returns a context of work that is done in the turn.
func (t *Turn) Within(ctx context.Context) context.Context {
	return context.WithValue(ctx, turnKey{}, t)
}

// Yield gives up the turn of the work, which continues without one: it has authenticated its client, or is about to wait.
func Yield(ctx context.Context) {
	if t, ok := ctx.Value(turnKey{}).(*Turn); ok {
		t.Leave()
	}
}
