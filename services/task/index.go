package task

import (
	"maps"
	"sync"
	"time"

	"github.com/waggle-dev/waggle/proto-schemas/id"
	"github.com/waggle-dev/waggle/proto-schemas/subject"
)

// agentKey names an agent of a tenant.
type agentKey struct {
	tenant id.Tenant
	agent  string
}

// place is where a task is: with an agent, or waiting for one.
type place struct {
	task    string
	agent   string // empty = it waits
	attempt int
	unsaid  bool      // the agent has not been told everything
	seen    time.Time // when it was handled last
}

// index knows the agents of open tasks that this process handled lately. It only saves time: the
// tasks' timers find the others. It is safe for concurrent use.
type index struct {
	mu     sync.Mutex
	places map[subject.Log]place
	held   map[agentKey]map[subject.Log]struct{}
	idle   map[agentKey]time.Time // when an agent last brought a task to its end
}

func newIndex() *index {
	return &index{places: map[subject.Log]place{}, held: map[agentKey]map[subject.Log]struct{}{}, idle: map[agentKey]time.Time{}}
}

// put notes where an open task is.
func (x *index) put(log subject.Log, p place) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.remove(log)
	x.places[log] = p
	if p.agent == "" {
		return
	}
	key := agentKey{log.Tenant, p.agent}
	if x.held[key] == nil {
		x.held[key] = map[subject.Log]struct{}{}
	}
	x.held[key][log] = struct{}{}
}

// drop removes a task that has ended.
func (x *index) drop(log subject.Log, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p := x.places[log]; p.agent != "" {
		x.idle[agentKey{log.Tenant, p.agent}] = now
	}
	x.remove(log)
}

// remove is drop while mu is held.
func (x *index) remove(log subject.Log) {
	key := agentKey{log.Tenant, x.places[log].agent}
	delete(x.places, log)
	delete(x.held[key], log)
	if len(x.held[key]) == 0 {
		delete(x.held, key)
	}
}

// load returns how many tasks the agent has, and when it last ended one.
func (x *index) load(t id.Tenant, agent string) (tasks int, since time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := agentKey{t, agent}
	return len(x.held[key]), x.idle[key]
}

// all returns where the tasks are.
func (x *index) all() map[subject.Log]place {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.places)
}

// forget drops tasks that were handled last before the given time.
func (x *index) forget(before time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for log, p := range x.places {
		if p.seen.Before(before) {
			x.remove(log)
		}
	}
	maps.DeleteFunc(x.idle, func(_ agentKey, at time.Time) bool { return at.Before(before) })
}
