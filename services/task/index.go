package task

import (
	"maps"
	"slices"
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
	moved func(agentKey) // told after an agent's load has changed, without a lock

	mu      sync.Mutex
	places  map[subject.Log]place
	waiting map[id.Tenant]map[subject.Log]struct{} // those without an agent
	held    map[agentKey]map[subject.Log]struct{}
	idle    map[agentKey]time.Time // when an agent last brought a task to its end
}

func newIndex() *index {
	return &index{
		moved: func(agentKey) {}, places: map[subject.Log]place{}, waiting: map[id.Tenant]map[subject.Log]struct{}{},
		held: map[agentKey]map[subject.Log]struct{}{}, idle: map[agentKey]time.Time{},
	}
}

// put notes where an open task is.
func (x *index) put(log subject.Log, p place) {
	x.mu.Lock()
	was := x.places[log].agent
	x.remove(log)
	x.places[log] = p
	if p.agent == "" {
		add(x.waiting, log.Tenant, log)
	} else {
		add(x.held, agentKey{log.Tenant, p.agent}, log)
	}
	x.mu.Unlock()
	if was != p.agent {
		x.tell(agentKey{log.Tenant, was}, agentKey{log.Tenant, p.agent})
	}
}

func add[K comparable](to map[K]map[subject.Log]struct{}, key K, log subject.Log) {
	if to[key] == nil {
		to[key] = map[subject.Log]struct{}{}
	}
	to[key][log] = struct{}{}
}

// tell calls moved for agents, and skips empty ids.
func (x *index) tell(agents ...agentKey) {
	for _, a := range agents {
		if a.agent != "" {
			x.moved(a)
		}
	}
}

// drop removes a task that has ended.
func (x *index) drop(log subject.Log, now time.Time) {
	x.mu.Lock()
	key := agentKey{log.Tenant, x.places[log].agent}
	if key.agent != "" {
		x.idle[key] = now
	}
	x.remove(log)
	x.mu.Unlock()
	x.tell(key)
}

// remove is drop while mu is held.
func (x *index) remove(log subject.Log) {
	key := agentKey{log.Tenant, x.places[log].agent}
	delete(x.places, log)
	if delete(x.held[key], log); len(x.held[key]) == 0 {
		delete(x.held, key)
	}
	if delete(x.waiting[log.Tenant], log); len(x.waiting[log.Tenant]) == 0 {
		delete(x.waiting, log.Tenant)
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

// near returns where the tasks of agents are, and those that wait for one in tenants.
func (x *index) near(agents map[agentKey]bool, tenants map[id.Tenant]bool) map[subject.Log]place {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[subject.Log]place{}
	for a := range agents {
		for log := range x.held[a] {
			out[log] = x.places[log]
		}
	}
	for t := range tenants {
		for log := range x.waiting[t] {
			out[log] = x.places[log]
		}
	}
	return out
}

// forget drops tasks that were handled last before the given time.
func (x *index) forget(before time.Time) {
	x.mu.Lock()
	lost := map[agentKey]bool{}
	for log, p := range x.places {
		if p.seen.Before(before) {
			lost[agentKey{log.Tenant, p.agent}] = true
			x.remove(log)
		}
	}
	maps.DeleteFunc(x.idle, func(a agentKey, at time.Time) bool {
		lost[a] = lost[a] || at.Before(before)
		return at.Before(before)
	})
	x.mu.Unlock()
	x.tell(slices.Collect(maps.Keys(lost))...)
}
